//! Where the text of a scrape comes from.

use roce_metrics::{Exposition, Format};

/// Values of an endpoint.
pub trait EndpointSource: Send + Sync {
    /// A part of the text of a scrape; it ends with a whole line, and comes from memory.
    fn part(&self, format: Format) -> String;
    /// Adds what the part lacks: values of this moment.
    fn add(&self, into: &mut Exposition);
    /// Values of one target of several; `module` is its kind where that is given. `None`: there is no such
    /// target.
    fn target(&self, _name: &str, _module: Option<&str>, _format: Format) -> Option<String> {
        None
    }
}
