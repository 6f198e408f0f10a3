//! Documents about GPUs that have none of their values, or in a form that is not read: what they are, and what to take in their place.

/// Words of a document, and what it is.
const DOCUMENTS: [(&[&str], &str); 13] = [
    (
        &["==NVSMI LOG=="],
        "the text of nvidia-smi -q; nvidia-smi -q -x has the same as XML",
    ),
    (
        &["NVIDIA-SMI", "Driver Version"],
        "the table of nvidia-smi; take nvidia-smi -q -x",
    ),
    (
        &["GPU0", "CPU Affinity"],
        "the matrix of nvidia-smi topo -m, which has no values of GPUs; `doctor` reads where GPUs and adapters are",
    ),
    (
        &["GPU0", "Legend:"],
        "a matrix of nvidia-smi topo, which has no values of GPUs",
    ),
    (
        &["ROCm System Management Interface"],
        "the tables of rocm-smi; take rocm-smi -a --json or amd-smi metric --json",
    ),
    (
        &["\"XPUM_STATS_"],
        "a document of Intel's xpu-smi stats, which is not read",
    ),
    (
        &["\"device_list\"", "Intel"],
        "the list of Intel's xpu-smi discovery, which has no values of GPUs",
    ),
    (
        &["\"pci_bdf_address\"", "\"device_id\""],
        "a document of Intel's xpu-smi, which is not read",
    ),
    (
        &["Timestamp", "DeviceId"],
        "the lines of Intel's xpu-smi dump, which are not read",
    ),
    (
        &["Device Information", "Intel"],
        "the table of Intel's xpu-smi discovery, which has no values of GPUs",
    ),
    (
        &["\"bdf\"", "\"gpu\""],
        "a list or topology of amd-smi, which has no values of GPUs; take amd-smi metric --json",
    ),
    (&["AMD-SMI"], "the table of amd-smi; take amd-smi metric --json"),
    (&["gpu,", "gfx"], "the CSV of amd-smi; take amd-smi metric --json"),
];

/// The kind of a text about GPUs whose values are not read, in words; `None`: it is not known.
pub fn described(text: &str) -> Option<&'static str> {
    let found = DOCUMENTS
        .iter()
        .find(|(words, _)| words.iter().all(|word| text.contains(word)));
    found.map(|(_, what)| *what)
}
