//! NX-OS' JSON: tables with one row are objects and those with several are lists, numbers are texts, and releases differ in `-` and `_`.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// The objects of a value: itself, or those of a list.
pub(super) fn objects(value: &Value) -> impl Iterator<Item = &Object> {
    let (one, several) = match value {
        Value::Object(object) => (Some(object), [].as_slice()),
        Value::Array(list) => (None, list.as_slice()),
        _ => (None, [].as_slice()),
    };
    one.into_iter().chain(several.iter().filter_map(Value::as_object))
}

/// Rows of a table: none where the table is absent, null or empty.
pub(super) fn rows<'a>(object: &'a Object, table: &str, row: &str) -> Vec<&'a Object> {
    let tables = field(object, table).into_iter().flat_map(objects);
    tables
        .filter_map(|table| field(table, row))
        .flat_map(objects)
        .collect()
}

/// Rows of `TABLE_name` with `ROW_name`.
pub(super) fn table<'a>(object: &'a Object, name: &str) -> Vec<&'a Object> {
    rows(object, &format!("TABLE_{name}"), &format!("ROW_{name}"))
}

/// Objects that have the tables: the rows of `TABLE_module`, or the document where it has no modules.
pub(super) fn modules(document: &Value) -> Vec<&Object> {
    let mut found = Vec::new();
    for object in objects(document) {
        let rows = table(object, "module");
        if rows.is_empty() {
            found.push(object);
        } else {
            found.extend(rows);
        }
    }
    found
}

/// The value of a key, with `-` the same as `_`.
pub(super) fn field<'a>(object: &'a Object, key: &str) -> Option<&'a Value> {
    object.get(key).or_else(|| {
        let is_same = |other: &str| {
            other.len() == key.len()
                && other.bytes().zip(key.bytes()).all(|(left, right)| {
                    left == right || (matches!(left, b'-' | b'_') && matches!(right, b'-' | b'_'))
                })
        };
        object
            .iter()
            .find(|(other, _)| is_same(other))
            .map(|(_, value)| value)
    })
}

/// The first of `keys` that is there, as text without blanks around it. A number becomes its digits.
pub(super) fn text(object: &Object, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| match field(object, key)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// The first of `keys` that is there, as a count. `--`, `-`, `N/A` and the empty text are none.
pub(super) fn count(object: &Object, keys: &[&str]) -> Option<u64> {
    let value = keys.iter().find_map(|key| field(object, key))?;
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => number(text),
        _ => None,
    }
}

/// A count in decimal digits, perhaps with commas between them.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if text.contains(',') {
        return text.replace(',', "").parse().ok();
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_row_and_several_are_rows() {
        for (document, expected) in [
            (json!({"TABLE_x": {"ROW_x": {"a": 1}}}), 1),
            (json!({"TABLE_x": {"ROW_x": [{"a": 1}, {"a": 2}]}}), 2),
            (
                json!({"TABLE_x": [{"ROW_x": {"a": 1}}, {"ROW_x": [{"a": 2}]}]}),
                2,
            ),
            (json!({"TABLE_x": {"ROW_x": null}}), 0),
            (json!({"TABLE_x": ""}), 0),
            (json!({}), 0),
        ] {
            assert_eq!(
                table(document.as_object().unwrap(), "x").len(),
                expected,
                "{document}"
            );
        }
    }

    #[test]
    fn counts_are_exact_or_absent() {
        let row = json!({"a": "9,007,199,254,740,993", "b_c": 18_446_744_073_709_551_615_u64, "d": "--", "e": "-",
            "f": "N/A", "g": "", "h": null, "i": -1, "j": 1.5, "k": "12(D)"});
        let row = row.as_object().unwrap();
        assert_eq!(count(row, &["a"]), Some(9_007_199_254_740_993));
        assert_eq!(count(row, &["b-c"]), Some(u64::MAX));
        for key in ["d", "e", "f", "g", "h", "i", "j", "k", "absent"] {
            assert_eq!(count(row, &[key]), None, "{key}");
        }
    }
}
