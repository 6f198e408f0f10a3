//! Passwords of the endpoint: HTTP's basic authentication (RFC 7617) against bcrypt hashes.
//!
//! bcrypt takes tens of milliseconds by intention. One thread computes it, one password at a time, and answers are remembered, so that
//! a scrape costs none and guesses cost no more than one core.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

/// Remembered answers; all are forgotten when there are more.
const MAX_REMEMBERED: usize = 128;

/// Users who may read.
pub(super) struct Users {
    hashes: Arc<HashMap<String, String>>,
    /// Hash that an unknown user's password is compared with, so that the time does not say who exists.
    decoy: String,
    /// Key of remembered answers, which are known to this process alone.
    salt: [u64; 2],
    remembered: Mutex<HashMap<[u8; 32], bool>>,
    /// One password is compared at a time, also where whoever sent it has hung up.
    turn: Arc<Semaphore>,
}

impl Users {
    /// Users with the bcrypt hashes of their passwords.
    pub(super) fn new(users: Vec<(String, String)>) -> Self {
        let decoy = users.first().map(|(_, hash)| hash.clone()).unwrap_or_default();
        Self {
            hashes: Arc::new(users.into_iter().collect()),
            decoy,
            salt: [0, 1].map(|number| RandomState::new().hash_one(number)),
            remembered: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// True if nobody needs a password.
    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// True if this value of `Authorization` is that of a user.
    pub(super) async fn admits(&self, authorization: Option<&HeaderValue>) -> bool {
        if self.is_empty() {
            return true;
        }
        let Some((name, password)) = authorization.and_then(credentials) else {
            return false;
        };
        let mut key = Sha256::new();
        key.update(self.salt[0].to_le_bytes());
        key.update(self.salt[1].to_le_bytes());
        key.update((name.len() as u64).to_le_bytes());
        key.update(&name);
        key.update(&password);
        let key: [u8; 32] = key.finalize().into();
        if let Some(known) = self.known(&key) {
            return known;
        }
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else {
            return false;
        };
        // Somebody may have had the same question meanwhile.
        if let Some(known) = self.known(&key) {
            return known;
        }
        let (is_user, hash) = match self.hashes.get(&name) {
            Some(hash) => (true, hash.clone()),
            None => (false, self.decoy.clone()),
        };
        let fits = tokio::task::spawn_blocking(move || {
            let fits = bcrypt::verify(password, &hash).unwrap_or(false);
            drop(turn);
            fits
        });
        let admitted = fits.await.unwrap_or(false) && is_user;
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, admitted);
        admitted
    }

    fn known(&self, key: &[u8; 32]) -> Option<bool> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(key).copied()
    }
}

/// Name and password of a header.
fn credentials(value: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).unwrap()
    }

    fn admits(users: &Users, value: Option<&HeaderValue>) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(users.admits(value))
    }

    #[test]
    fn passwords_are_compared_with_their_hashes() {
        // Cost 4, the least that bcrypt has.
        let users = Users::new(vec![(
            "prometheus".to_owned(),
            bcrypt::hash("s3:cret", 4).unwrap(),
        )]);
        for _ in 0..2 {
            assert!(admits(&users, Some(&header("prometheus:s3:cret"))));
            assert!(!admits(&users, Some(&header("prometheus:wrong"))));
            assert!(!admits(&users, Some(&header("nobody:s3:cret"))));
            // The boundary between name and password counts.
            assert!(!admits(&users, Some(&header("prometheus:s3"))));
        }
        assert!(!admits(&users, None));
        for odd in [
            "Basic",
            "Basic !",
            "Bearer cHJvbWV0aGV1czpzMzpjcmV0",
            "Basic YWJj",
        ] {
            assert!(!admits(&users, Some(&HeaderValue::from_static(odd))), "{odd}");
        }
        assert!(admits(&Users::new(Vec::new()), None), "no users: no passwords");
    }

    #[test]
    fn who_hangs_up_does_not_free_the_turn() {
        // Cost 10: tens of milliseconds even in an optimised build.
        let hash = "$2b$10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
        let users = Users::new(vec![("a".to_owned(), hash.to_owned())]);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let guess = header("a:guess");
            let hung_up = tokio::time::timeout(std::time::Duration::ZERO, users.admits(Some(&guess)));
            assert!(hung_up.await.is_err());
            assert_eq!(users.turn.available_permits(), 0, "it is still compared");
            assert!(users.turn.acquire().await.is_ok(), "and ends");
        });
    }

    #[test]
    fn the_answers_that_are_remembered_are_bounded() {
        let users = Users::new(vec![("a".to_owned(), bcrypt::hash("b", 4).unwrap())]);
        for guess in 0..MAX_REMEMBERED + 9 {
            assert!(!admits(&users, Some(&header(&format!("a:{guess}")))));
        }
        assert!(users.remembered.lock().unwrap().len() <= MAX_REMEMBERED);
        assert!(admits(&users, Some(&header("a:b"))));
    }
}
