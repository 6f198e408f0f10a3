//! NX-API of Nexus switches: commands in one request of JSON over HTTPS, and the outcomes in its answer.
//!
//! The form is Cisco's `ins_api` (Cisco Nexus 9000 Series NX-OS Programmability Guide, "NX-API CLI"). The crates looked at: nxapi (0.9) asks
//! for one command at a time; reqwest (0.12) brings an asynchronous runtime; ureq (3.5) blocks, as the thread of a device may.

mod secret;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roce_switches::device::{Form, Problem, Question, Reason};
use roce_switches::inventory::{SshSettings, SwitchTarget};
use roce_switches::switch::{MAX_NXAPI_BYTES, NXAPI_NO_JSON, NxapiForm, nxapi_bodies, nxapi_request};
use ureq::Agent;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, TcpConnector};

use crate::reader::answer::{Outcome, UnansweredQuestion};
use crate::reader::error::ReaderError;
use crate::reader::refusal::refusal;
use crate::reader::transport::{MAX_TIMEOUTS, Transport};
use secret::{Password, basic};
pub(crate) use tls::Tls;

/// Commands of one request. NX-OS limits them, and a longer answer is lost as a whole.
const MAX_COMMANDS: usize = 10;
/// Bytes of the head of an answer.
const MAX_HEAD: usize = 64 << 10;
/// The end of a command that wants a JSON document. NX-API has a field for it.
const JSON: &str = "| json";

/// A switch by its NX-API.
pub(crate) struct Client {
    agent: Agent,
    url: String,
    authorization: Password,
    password: Password,
    timeout: Duration,
    /// Commands for which this switch has no JSON.
    texts: BTreeSet<String>,
}

impl Client {
    /// The switch of an inventory. The times are those of its connections by ssh.
    ///
    /// # Errors
    /// If the password or the certificate cannot be read.
    pub(crate) fn new(target: &SwitchTarget, times: &Arc<SshSettings>) -> Result<Self, ReaderError> {
        let (Some(url), Some(user)) = (&target.url, &target.user) else {
            return Err(ReaderError::Nxapi("it needs url and user".to_owned()));
        };
        let password = Password::from_target(target)?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            // Another address may not see the password.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_response_header_size(MAX_HEAD)
            .timeout_connect(Some(times.connect_timeout))
            .timeout_global(Some(times.timeout))
            .user_agent("roce-analyze")
            .build();
        let connector = TcpConnector::default().chain(Tls::from_target(target)?);
        Ok(Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            url: url.clone(),
            authorization: basic(user, &password),
            password,
            timeout: times.timeout,
            texts: BTreeSet::new(),
        })
    }

    /// Form of a command's answer, and the command as NX-API takes it.
    fn form<'a>(&self, command: &'a str) -> (NxapiForm, &'a str) {
        match command.trim_end().strip_suffix(JSON) {
            Some(bare) if !self.texts.contains(command) => (NxapiForm::Json, bare.trim_end()),
            Some(bare) => (NxapiForm::Text, bare.trim_end()),
            None => (NxapiForm::Text, command),
        }
    }

    /// The outcomes of some commands in one form, from one request; `Err`: the request has none for any of them.
    fn request(&self, form: NxapiForm, commands: &[&str]) -> Result<Vec<Outcome>, UnansweredQuestion> {
        let sent = self
            .agent
            .post(&self.url)
            .header("authorization", self.authorization.shown_to_device())
            .header("content-type", "application/json")
            .send(nxapi_request(commands, form));
        let mut answer = sent.map_err(|error| self.failed(&error))?;
        let status = answer.status().as_u16();
        let bytes = answer
            .body_mut()
            .with_config()
            .limit(MAX_NXAPI_BYTES)
            .read_to_vec();
        if status != 200 {
            return Err(refused(status));
        }
        let bytes = bytes.map_err(|error| self.failed(&error))?;
        outcomes(&bytes, commands.len())
    }

    /// A request that failed on its way.
    fn failed(&self, error: &ureq::Error) -> UnansweredQuestion {
        match error {
            ureq::Error::Timeout(_) => UnansweredQuestion::new(
                Reason::Timeout,
                format!("no answer within {} s", self.timeout.as_secs_f64()),
            ),
            ureq::Error::BodyExceedsLimit(_) => UnansweredQuestion::too_long(),
            ureq::Error::Rustls(error) => UnansweredQuestion::new(Reason::Unreachable, tls::explained(error)),
            ureq::Error::Io(error) => {
                let of_tls = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                match of_tls {
                    Some(error) => UnansweredQuestion::new(Reason::Unreachable, tls::explained(error)),
                    None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                        UnansweredQuestion::new(Reason::Parse, "the answer is cut short")
                    }
                    None => UnansweredQuestion::new(Reason::Unreachable, format!("cannot connect: {error}")),
                }
            }
            error => UnansweredQuestion::new(Reason::Unreachable, error.to_string()),
        }
    }

    /// Asks some commands in one form: together, and one by one where the request with all of them fails in the switch.
    fn ask_some(&self, form: NxapiForm, commands: &[&str], timeouts: &mut usize) -> Vec<Outcome> {
        let whole = match self.request(form, commands) {
            Ok(outcomes) => return outcomes,
            Err(unanswered) => unanswered,
        };
        *timeouts += usize::from(whole.reason == Reason::Timeout);
        if commands.len() == 1 || whole.reason != Reason::Parse {
            return vec![Err(whole)];
        }
        let mut outcomes = Vec::new();
        for command in commands {
            let outcome = match self.request(form, &[command]) {
                Ok(mut one) => one
                    .pop()
                    .unwrap_or_else(|| Err(UnansweredQuestion::new(Reason::Parse, "no output"))),
                Err(unanswered) => Err(unanswered),
            };
            let reason = outcome.as_ref().err().map(|unanswered| unanswered.reason);
            *timeouts += usize::from(reason == Some(Reason::Timeout));
            outcomes.push(outcome);
            if matches!(reason, Some(Reason::Unreachable)) || *timeouts >= MAX_TIMEOUTS {
                break;
            }
        }
        outcomes
    }

    /// The device's words without the password, which a page of an error may repeat.
    fn clean(&self, mut unanswered: UnansweredQuestion) -> UnansweredQuestion {
        for secret in [&self.password, &self.authorization] {
            unanswered.text = secret.removed_from(&unanswered.text);
            unanswered.answer = unanswered.answer.map(|text| secret.removed_from(&text));
        }
        unanswered
    }
}

impl Transport for Client {
    fn ask(&mut self, questions: &[Question]) -> Vec<Outcome> {
        let mut all: Vec<Option<Outcome>> = questions.iter().map(|_| None).collect();
        let mut timeouts = 0;
        let mut is_at_end = false;
        // Commands for which the switch has no JSON are asked again as text.
        for form in [NxapiForm::Json, NxapiForm::Text] {
            let open: Vec<usize> = (0..questions.len())
                .filter(|place| all[*place].is_none() && questions[*place].form == Form::Whole)
                .filter(|place| self.form(&questions[*place].command).0 == form)
                .collect();
            for places in open.chunks(MAX_COMMANDS) {
                if is_at_end {
                    break;
                }
                let commands: Vec<&str> = places
                    .iter()
                    .map(|place| self.form(&questions[*place].command).1)
                    .collect();
                let outcomes = self.ask_some(form, &commands, &mut timeouts);
                is_at_end = outcomes.len() < places.len() || timeouts >= MAX_TIMEOUTS;
                for (place, outcome) in places.iter().zip(outcomes) {
                    let is_text = matches!(&outcome, Err(unanswered) if unanswered.text == NXAPI_NO_JSON);
                    if form == NxapiForm::Json && is_text {
                        self.texts.insert(questions[*place].command.clone());
                    } else {
                        all[*place] = Some(outcome.map_err(|unanswered| self.clean(unanswered)));
                    }
                }
            }
        }
        let unasked = || {
            UnansweredQuestion::new(
                Reason::Timeout,
                "not asked: the switch did not answer other commands",
            )
        };
        let is_script = || UnansweredQuestion::new(Reason::Unsupported, "NX-API runs no scripts");
        let outcome = |(question, outcome): (&Question, Option<Outcome>)| match (outcome, question.form) {
            (Some(outcome), _) => outcome,
            (None, Form::Sections) => Err(is_script()),
            (None, Form::Whole) => Err(unasked()),
        };
        // Where nothing was answered, one reason says why for all.
        let first = all.iter().flatten().next();
        if is_at_end
            && all.iter().flatten().all(Result::is_err)
            && let Some(Err(unanswered)) = first
        {
            return vec![Err(unanswered.clone())];
        }
        questions.iter().zip(all).map(outcome).collect()
    }
}

/// An answer of HTTP that is not 200.
fn refused(status: u16) -> UnansweredQuestion {
    let (reason, text) = match status {
        401 => (Reason::Permission, "401: the user or the password is wrong"),
        403 => (
            Reason::Permission,
            "403: the role of this user may not use NX-API",
        ),
        404 => (
            Reason::Unreachable,
            "404: there is no NX-API: `feature nxapi` is off, or url does not end in /ins",
        ),
        300..=399 => (
            Reason::Unreachable,
            "it leads to another address, which is not followed",
        ),
        500 => (Reason::Parse, "500: an error inside of the switch"),
        502..=504 => (
            Reason::Unreachable,
            "NX-API does not run behind the switch's web server",
        ),
        _ => {
            let text = format!("{status}: an answer of HTTP that is not understood");
            return UnansweredQuestion::new(Reason::Parse, text);
        }
    };
    UnansweredQuestion::new(reason, text)
}

/// The outcomes in an answer to `count` commands.
fn outcomes(bytes: &[u8], count: usize) -> Result<Vec<Outcome>, UnansweredQuestion> {
    let bodies = nxapi_bodies(&String::from_utf8_lossy(bytes))
        .map_err(|problem| UnansweredQuestion::new(problem.reason, problem.text))?;
    if bodies.len() != count {
        let text = format!("{} outputs for {count} commands", bodies.len());
        return Err(UnansweredQuestion::new(Reason::Parse, text));
    }
    let outcome = |body: Result<String, Problem>| match body {
        Ok(body) => refusal(&body).map_or(Ok(body), Err),
        Err(problem) => {
            let refused = refusal(&problem.text);
            Err(refused.unwrap_or_else(|| UnansweredQuestion::new(problem.reason, problem.text)))
        }
    };
    Ok(bodies.into_iter().map(|(_, body)| outcome(body)).collect())
}
