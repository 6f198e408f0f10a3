//! Names of metrics in expressions, for those who check them.

/// The names of our metrics and recorded series in an expression.
pub(crate) fn metrics_in(expr: &str) -> Vec<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':');
    // Texts of selectors, such as {job=~"roce.*"}, are no names.
    let outside = expr.split('"').step_by(2);
    let words = outside.flat_map(move |text| text.split(move |character| !is_part(character)));
    words
        .filter(|word| word.starts_with("roce_") || word.starts_with("roce:"))
        .collect()
}

/// True if a metric is about PFC.
pub(crate) fn is_of_pfc(name: &str) -> bool {
    name.contains("pfc_")
}

/// True if a metric is about 802.3x pauses, or about those and PFC together.
pub(crate) fn is_of_pauses(name: &str) -> bool {
    name.contains("_pause_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let expr = "sum by (cluster) (rate(roce_a_total{job=~\"roce.*\"}[5m])) / (roce:b:rate5m > 1)";
        assert_eq!(metrics_in(expr), ["roce_a_total", "roce:b:rate5m"]);
        assert!(
            is_of_pfc("roce_pfc_receive_paused_seconds_total")
                && !is_of_pauses("roce_pfc_receive_paused_seconds_total")
        );
        assert!(is_of_pauses("roce_switch_pause_transmitted_frames_total"));
    }
}
