//! Replacing single values of a scenario before it is read: `--set switch.kmin=100KB`.

use toml::{Table, Value};

use crate::Error;

/// Puts `value` at `path` into `root`. Tables that are not there are made; array elements must be there.
pub(super) fn set(root: &mut Table, path: &str, value: &str) -> Result<(), Error> {
    let wrong = |why: String| Error::Scenario(format!("cannot set {path}: {why}"));
    let mut keys: Vec<&str> = path.split('.').collect();
    let Some(last) = keys.pop().filter(|_| path.split('.').all(|key| !key.is_empty())) else {
        return Err(wrong("the path has an empty part".to_owned()));
    };
    let mut keys = keys.into_iter().peekable();
    let mut table = root;
    while let Some(key) = keys.next() {
        let next = table.entry(key).or_insert_with(|| Value::Table(Table::new()));
        table = match next {
            Value::Table(inner) => inner,
            Value::Array(elements) => {
                let count = elements.len();
                let place = keys.next().map(str::parse::<usize>);
                let Some(Ok(place)) = place else {
                    return Err(wrong(format!("{key} is a list: give a number, as in {key}.0")));
                };
                match elements.get_mut(place) {
                    Some(Value::Table(inner)) => inner,
                    Some(_) => return Err(wrong(format!("{key}.{place} holds no keys"))),
                    None => return Err(wrong(format!("{key} has {count} elements, counted from 0"))),
                }
            }
            _ => return Err(wrong(format!("{key} is a value and holds no keys"))),
        };
    }
    if let Some(Value::Array(_)) = table.get(last)
        && !value.trim_start().starts_with('[')
    {
        return Err(wrong(format!("{last} is a list: give a number, as in {last}.0")));
    }
    table.insert(last.to_owned(), value_of(value));
    Ok(())
}

/// A value as in TOML; what is none is taken as text.
fn value_of(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(path: &str, value: &str) -> Result<Table, Error> {
        let mut table: Table =
            toml::from_str("seed = 1\n[switch]\nkmin = \"5KB\"\n[[flow]]\nfrom = \"h1\"").unwrap();
        set(&mut table, path, value)?;
        Ok(table)
    }

    #[test]
    fn values_are_replaced_and_made() {
        assert_eq!(after("seed", "7").unwrap()["seed"], Value::Integer(7));
        let kmin = |t: Table| t["switch"]["kmin"].clone();
        assert_eq!(
            kmin(after("switch.kmin", "100KB").unwrap()),
            Value::String("100KB".into())
        );
        assert_eq!(
            after("flow.0.from", "h2").unwrap()["flow"][0]["from"],
            Value::String("h2".into())
        );
        assert_eq!(
            after("nic.retries", "3").unwrap()["nic"]["retries"],
            Value::Integer(3)
        );
        assert_eq!(
            after("switch.ecn", "false").unwrap()["switch"]["ecn"],
            Value::Boolean(false)
        );
    }

    #[test]
    fn wrong_paths_are_refused() {
        for (path, text) in [
            ("flow.9.from", "flow has 1 elements"),
            ("flow.from", "flow is a list"),
            ("flow", "flow is a list"),
            ("seed.x", "seed is a value"),
            ("a..b", "empty part"),
        ] {
            let error = after(path, "1").unwrap_err().to_string();
            assert!(error.contains(text), "{path}: {error}");
        }
    }
}
