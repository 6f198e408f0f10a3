// Checks of reports in a browser: `cargo xtask browser`, which makes the reports and knows where they are, runs it with node.

import "./numbers.mjs";
import "./use.mjs";
import "./look.mjs";
