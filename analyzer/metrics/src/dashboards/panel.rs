//! The form of the description: dashboards, their rows, and panels.

/// One dashboard.
pub struct Dashboard {
    /// Its name in file and UID.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// True if it has the variable of switches.
    pub switches: bool,
    /// Its rows, the first of which is open.
    pub sections: &'static [Section],
}

/// A row of panels.
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Its panels.
    pub panels: &'static [Panel],
}

/// How a panel shows its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One number.
    Stat,
    /// Lines over time.
    Series,
    /// A heatmap over time.
    Heatmap,
    /// A table of the present values.
    Table,
}

/// One panel.
#[derive(Clone, Copy)]
pub struct Panel {
    /// How it shows its values.
    pub kind: Kind,
    /// Its title.
    pub title: &'static str,
    /// Grafana's name of the unit.
    pub unit: &'static str,
    /// Its meaning, the values that are bad, and the next step then.
    pub about: &'static str,
    /// Expressions, each with the legend of its series.
    pub queries: &'static [(&'static str, &'static str)],
    /// Values above which it is yellow, then red; one limit alone is red.
    pub limits: &'static [f64],
}
