//! Parts of pages without scripts: their style, and texts that cannot become markup.

use roce_model::text::steers;

/// The style: light and dark, tables that scroll by themselves on a narrow screen.
pub const STYLE: &str = include_str!("markup.css");

/// Text that cannot become markup, in elements and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if steers(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}
