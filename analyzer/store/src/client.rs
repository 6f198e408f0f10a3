//! Connections to stores: one client for each bucket, whose settings come from the environment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use crate::error::Error;
use crate::location::{Location, Scheme};
use crate::redact;

/// Threads for connections.
const THREADS: usize = 2;
/// Limit of one request, with its answer: a part of 8 MiB takes it at 140 kB/s.
const REQUEST: Duration = Duration::from_mins(1);
/// Limit of making a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Attempts of one request beyond the first.
const MAX_RETRIES: usize = 3;
/// Time after which a request is not tried once more.
const RETRYING: Duration = Duration::from_secs(20);
/// Buckets in one process.
const MAX_BUCKETS: usize = 64;

/// Clients of all buckets that this process has connected to.
#[derive(Debug, Default)]
pub struct Client {
    runtime: OnceLock<Runtime>,
    buckets: Mutex<BTreeMap<(Scheme, String), Arc<dyn ObjectStore>>>,
}

impl Client {
    /// No connection is there yet, and no thread for it: these come with the first request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for something of a store, with the threads for connections.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.block_on(work));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("connections")
            .enable_all()
            .build()
            .map_err(|source| Error::Threads { source })?;
        // Another thread may have been faster: its runtime stays.
        Ok(self.runtime.get_or_init(|| runtime).block_on(work))
    }

    /// A client whose buckets are in memory, for tests of those who use it.
    #[cfg(test)]
    pub(crate) fn with(bucket: &str, store: Arc<dyn ObjectStore>) -> Self {
        let client = Self::new();
        let key = (Scheme::S3, bucket.to_owned());
        client.buckets.lock().unwrap().insert(key, store);
        client
    }

    /// Learns how the bucket of `location` is reached, without connecting to it: a wrong setting is an error at the start and not later.
    ///
    /// # Errors
    /// The environment has too little, or what cannot be understood.
    pub fn prepare(&self, location: &Location) -> Result<(), Error> {
        self.bucket(location).map(drop)
    }

    /// Removes an object. One that is not there is removed already.
    ///
    /// # Errors
    /// The store refuses, or cannot be reached.
    pub fn remove(&self, location: &Location) -> Result<(), Error> {
        let (store, path) = self.object(location)?;
        match self.wait(store.delete(&path))? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Error::writing(location.to_string(), &error)),
        }
    }

    /// The store of an object, and its path there.
    pub(crate) fn object(&self, location: &Location) -> Result<(Arc<dyn ObjectStore>, Path), Error> {
        let path = Path::parse(location.key()).map_err(|error| Error::Settings {
            url: location.to_string(),
            reason: redact::text_of(&error),
        })?;
        Ok((self.bucket(location)?, path))
    }

    fn bucket(&self, location: &Location) -> Result<Arc<dyn ObjectStore>, Error> {
        let key = (location.scheme(), location.bucket().to_owned());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = buckets.get(&key) {
            return Ok(Arc::clone(store));
        }
        if buckets.len() >= MAX_BUCKETS {
            return Err(Error::Settings {
                url: location.to_string(),
                reason: format!("more than {MAX_BUCKETS} buckets in one run"),
            });
        }
        let store = connect(location).map_err(|error| Error::Settings {
            url: location.to_string(),
            reason: redact::text_of(&error),
        })?;
        buckets.insert(key, Arc::clone(&store));
        Ok(store)
    }
}

fn connect(location: &Location) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let bucket = location.bucket();
    let retry = RetryConfig {
        backoff: BackoffConfig {
            max_backoff: Duration::from_secs(5),
            ..BackoffConfig::default()
        },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRYING,
    };
    Ok(match location.scheme() {
        Scheme::S3 => {
            let builder = AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry);
            Arc::new(
                builder
                    .with_client_options(options(&["AWS_ALLOW_HTTP"]))
                    .build()?,
            )
        }
        Scheme::Google => {
            let builder = GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry);
            Arc::new(
                builder
                    .with_client_options(options(&["GOOGLE_ALLOW_HTTP"]))
                    .build()?,
            )
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry);
            let allow = ["AZURE_ALLOW_HTTP", "AZURE_STORAGE_USE_EMULATOR"];
            Arc::new(builder.with_client_options(options(&allow)).build()?)
        }
    })
}

/// Options of connections; these replace what the builders took of them from the environment. Without encryption only where one of these variables is `true`.
fn options(allow_http: &[&str]) -> ClientOptions {
    let allows = |name: &&str| std::env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    ClientOptions::new()
        .with_timeout(REQUEST)
        .with_connect_timeout(CONNECT)
        .with_allow_http(allow_http.iter().any(allows))
}
