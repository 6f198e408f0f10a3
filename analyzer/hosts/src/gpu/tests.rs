use proptest::prelude::*;
use roce_model::{Counter, SampleSource, Time};

use super::*;

/// Two GPUs in the forms of nvidia-smi's manual: units in the cells of the first line, none in the second one, and each way to say nothing.
const CSV: &str = "\
timestamp, index, uuid, name, pci.bus_id, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], temperature.gpu, temperature.memory, power.draw [W], enforced.power.limit [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active, pcie.link.gen.gpucurrent, pcie.link.width.current, ecc.errors.uncorrected.volatile.total
2026/11/22 07:15:01.123, 0, GPU-4f2a1c1e-0000-4000-8000-000000000001, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 98 %, 61 %, 72310 MiB, 81559 MiB, 64, 78, 688.21 W, 700.00 W, 1755 MHz, 2619 MHz, 0x0000000000000044, 5, 16, 0
2026/11/22 07:15:01.125, 1, GPU-4f2a1c1e-0000-4000-8000-000000000002, NVIDIA RTX A4000, 00000000:86:00.0, 41, [N/A], 9120, 16376, 71, N/A, [Not Supported], [N/A], 1560, 7000, [N/A], 4, 16, [N/A]
";

#[test]
fn csv_with_header_and_units() {
    let all = gpus(CSV);
    assert_eq!(all.notes, Vec::<String>::new());
    let [first, second] = all.gpus.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(first.object, "gpu0");
    assert_eq!(first.pci_address.as_deref(), Some("0000:3b:00.0"));
    assert_eq!(first.name.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    assert_eq!(first.value(Counter::GpuUtilization, None), Some(0.98));
    // 72,310 times 2^20.
    assert_eq!(first.value(Counter::GpuMemoryUsed, None), Some(75_822_530_560.0));
    assert_eq!(first.value(Counter::GpuTemperature, Some("memory")), Some(78.0));
    assert_eq!(first.value(Counter::GpuPower, None), Some(688.21));
    assert_eq!(first.value(Counter::GpuClock, Some("sm")), Some(1.755e9));
    assert_eq!(first.value(Counter::GpuEccUncorrectedErrors, None), Some(0.0));
    // 0x44: the power cap of software, and heat.
    assert_eq!(
        first.throttled.as_deref(),
        Some(&["sw_power_cap".to_owned(), "hw_thermal_slowdown".to_owned()][..])
    );
    assert_eq!(
        first.value(Counter::GpuThrottled, Some("hw_thermal_slowdown")),
        Some(1.0)
    );
    assert_eq!(first.value(Counter::GpuThrottled, Some("hw_slowdown")), Some(0.0));
    assert_eq!(second.value(Counter::GpuUtilization, None), Some(0.41));
    for (counter, detail) in [
        (Counter::GpuMemoryUtilization, None),
        (Counter::GpuTemperature, Some("memory")),
        (Counter::GpuPower, None),
        (Counter::GpuPowerLimit, None),
        (Counter::GpuEccUncorrectedErrors, None),
    ] {
        assert_eq!(second.value(counter, detail), None, "{counter:?}");
    }
    assert_eq!(second.throttled, None);
    assert!(!second.is_lost);
}

#[test]
fn csv_without_header_is_in_the_order_of_the_query() {
    let line = "3, GPU-a, NVIDIA H100, 00010000:86:00.0, 41, 7, 9120, 16376, 71, 70, 100, 700, 1560, 7000, 0x1, 4, 16, 0";
    let all = gpus(line);
    assert_eq!(all.gpus[0].object, "gpu3");
    // A domain above ffff keeps its digits.
    assert_eq!(all.gpus[0].pci_address.as_deref(), Some("10000:86:00.0"));
    // At rest is no slowdown.
    assert_eq!(all.gpus[0].throttled.as_deref(), Some(&[][..]));
}

#[test]
fn cells_in_brackets_are_absent_in_every_column() {
    for word in [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "[GPU requires reset]",
        "ERR!",
        "",
    ] {
        let cells: Vec<&str> = QUERY
            .iter()
            .map(|column| if *column == "index" { "0" } else { word })
            .collect();
        let all = gpus(&cells.join(", "));
        let [gpu] = all.gpus.as_slice() else {
            panic!("{word}: {all:?}")
        };
        assert_eq!(gpu.values, [], "{word}");
        assert_eq!((&gpu.uuid, &gpu.name, &gpu.throttled), (&None, &None, &None));
        assert_eq!(
            gpu.is_lost,
            word.contains("Unknown Error") || word.contains("requires reset"),
            "{word}"
        );
    }
}

#[test]
fn failures_of_the_driver_are_no_gpus() {
    let all = gpus(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it is installed.\n",
    );
    assert!(all.gpus.is_empty());
    assert_eq!(all.notes, ["the NVIDIA driver does not answer"]);
    let all =
        gpus("Unable to determine the device handle for GPU0000:86:00.0: GPU is lost.  Reboot the system.\n");
    assert!(all.gpus[0].is_lost);
    assert_eq!(all.gpus[0].pci_address.as_deref(), Some("0000:86:00.0"));
}

#[test]
fn a_column_that_the_driver_lacks_is_replaced_or_left_out() {
    let reply = |name: &str| format!("Field \"{name}\" is not a valid field to query.\n");
    let older = csv_columns(&QUERY, &reply("clocks_event_reasons.active")).unwrap();
    assert!(older.contains(&"clocks_throttle_reasons.active"));
    assert_eq!(older.len(), QUERY.len());
    let without = csv_columns(&older, &reply("clocks_throttle_reasons.active")).unwrap();
    assert_eq!(without.len(), QUERY.len() - 1);
    assert_eq!(csv_columns(&QUERY, "some other error"), None);
}

/// Elements of nvidia-smi -q -x, as its document type has them (nvsmi_device_v12).
const XML: &str = r#"<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>550.54.15</driver_version>
	<gpu id="00000000:3B:00.0">
		<product_name>NVIDIA L4</product_name>
		<uuid>GPU-1</uuid>
		<pci>
			<pci_gpu_link_info>
				<pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>3</current_link_gen></pcie_gen>
				<link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
			</pci_gpu_link_info>
			<replay_counter>2</replay_counter>
		</pci>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
			<clocks_event_reason_hw_slowdown>Active</clocks_event_reason_hw_slowdown>
			<clocks_event_reason_display_clocks_setting>Not Active</clocks_event_reason_display_clocks_setting>
		</clocks_event_reasons>
		<fb_memory_usage><total>23034 MiB</total><reserved>434 MiB</reserved><used>1 MiB</used></fb_memory_usage>
		<utilization><gpu_util>7 %</gpu_util><memory_util>N/A</memory_util></utilization>
		<temperature><gpu_temp>44 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
		<gpu_power_readings><power_draw>31.05 W</power_draw><current_power_limit>72.00 W</current_power_limit></gpu_power_readings>
		<clocks><graphics_clock>2040 MHz</graphics_clock><sm_clock>2040 MHz</sm_clock><mem_clock>6250 MHz</mem_clock></clocks>
	</gpu>
</nvidia_smi_log>
"#;

#[test]
fn xml_of_nvidia_smi() {
    let all = gpus(XML);
    let [gpu] = all.gpus.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(gpu.pci_address.as_deref(), Some("0000:3b:00.0"));
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA L4"));
    assert_eq!(gpu.value(Counter::GpuUtilization, None), Some(0.07));
    assert_eq!(gpu.value(Counter::GpuMemoryUtilization, None), None);
    assert_eq!(
        gpu.value(Counter::GpuMemoryTotal, None),
        Some(23_034.0 * 1_048_576.0)
    );
    assert_eq!(gpu.value(Counter::GpuPower, None), Some(31.05));
    assert_eq!(gpu.value(Counter::GpuPcieLinkWidth, None), Some(8.0));
    assert_eq!(gpu.value(Counter::GpuPcieReplays, None), Some(2.0));
    assert_eq!(gpu.throttled.as_deref(), Some(&["hw_slowdown".to_owned()][..]));
    for length in 0..XML.len() {
        let _ = gpus(&XML[..length]);
    }
}

const DCGM: &str = r#"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA \"H100\", 80GB",Hostname="gpu1"} 98
DCGM_FI_DEV_MEMORY_TEMP{gpu="1", UUID="GPU-2"} 9223372036854775794
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1"} 72310
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1"} 8600
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"} 688.210000
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-1"} 251885217371
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",err_code="0",err_msg="No Error"} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"} 0.25
"#;

#[test]
fn metrics_of_dcgm() {
    let all = gpus(DCGM);
    let gpu = |object: &str| all.gpus.iter().find(|gpu| gpu.object == object).unwrap();
    let first = gpu("gpu0");
    assert_eq!(first.name.as_deref(), Some("NVIDIA \"H100\", 80GB"));
    assert_eq!(first.value(Counter::GpuUtilization, None), Some(0.98));
    // 72,310 and 8,600 MiB; what is reserved is missing.
    assert_eq!(
        first.value(Counter::GpuMemoryTotal, None),
        Some(80_910.0 * 1_048_576.0)
    );
    assert_eq!(first.value(Counter::GpuPower, None), Some(688.21));
    assert_eq!(first.value(Counter::GpuXidLast, None), Some(0.0));
    let energy = first.value(Counter::GpuEnergy, None).unwrap();
    assert!((energy - 251_885_217.371).abs() < 1e-3);
    // The blank value of 64 bits is not a temperature.
    assert_eq!(gpu("gpu1").value(Counter::GpuTemperature, Some("memory")), None);
    assert_eq!(
        gpu("gpu0/mig7").value(Counter::GpuActivity, Some("graphics_engine")),
        Some(0.25)
    );
    for length in (0..DCGM.len()).filter(|length| DCGM.is_char_boundary(*length)) {
        let _ = gpus(&DCGM[..length]);
    }
}

#[test]
fn documents_of_amd_smi() {
    let text = r#"{"gpu_data":[{"gpu":0,"usage":{"gfx_activity":{"value":97,"unit":"%"},"umc_activity":"N/A"},
        "power":{"socket_power":{"value":712,"unit":"W"}},"temperature":{"edge":"N/A","hotspot":{"value":63,"unit":"C"},"mem":{"value":51,"unit":"C"}},
        "mem_usage":{"total_vram":{"value":196592,"unit":"MB"},"used_vram":{"value":283,"unit":"MB"}},
        "clock":{"gfx_0":{"clk":{"value":2101,"unit":"MHz"}}}},{"no":1}]}"#;
    let all = gpus(text);
    let [gpu] = all.gpus.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(gpu.value(Counter::GpuUtilization, None), Some(0.97));
    assert_eq!(gpu.value(Counter::GpuMemoryUtilization, None), None);
    assert_eq!(gpu.value(Counter::GpuTemperature, Some("gpu")), Some(63.0));
    assert_eq!(gpu.value(Counter::GpuMemoryUsed, None), Some(283.0 * 1_048_576.0));
    assert_eq!(gpu.value(Counter::GpuClock, Some("sm")), Some(2.101e9));
    assert_eq!(all.notes, ["an entry has no number of its GPU"]);
    assert!(gpus("{\"gpu_data\":[{").gpus.is_empty());
}

#[test]
fn traffic_of_dmon() {
    // The first lines of `nvidia-smi dmon -s put`; MB/s are 10^6 bytes a second, and - says nothing.
    let text = "\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec  rxpci  txpci
# Idx      W      C      C      %      %      %      %   MB/s   MB/s
    0    412     58     71     97     44      0      0   2412     17
    1      -     55      -      0      0      0      0      -      -
    0    415     58     71     98     44      0      0   1206     18
";
    let all = gpus(text);
    let [first, second] = all.gpus.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(first.value(Counter::GpuPcieRate, Some("received")), Some(1.206e9));
    assert_eq!(first.value(Counter::GpuPcieRate, Some("sent")), Some(18e6));
    assert_eq!(first.value(Counter::GpuPower, None), Some(415.0));
    assert_eq!(first.value(Counter::GpuUtilization, None), Some(0.98));
    assert_eq!(second.value(Counter::GpuPcieRate, Some("sent")), None);
    assert_eq!(second.value(Counter::GpuTemperature, Some("memory")), None);
    assert_eq!(second.value(Counter::GpuUtilization, None), Some(0.0));
}

#[test]
fn traffic_of_nvlinks() {
    let text = "\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-4f2a1c1e-0000-4000-8000-000000000001)
\t Link 0: Data Tx: 100 KiB
\t Link 0: Data Rx: 20 KiB
\t Link 1: Data Tx: 11 KiB
\t Link 1: Data Rx: N/A
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-4f2a1c1e-0000-4000-8000-000000000002)
";
    let all = gpus(text);
    let first = &all.gpus[0];
    assert_eq!(first.name.as_deref(), Some("NVIDIA A100-SXM4-80GB"));
    // 111 and 20 KiB of 1,024 bytes.
    assert_eq!(
        first.value(Counter::GpuNvlinkBytes, Some("sent")),
        Some(113_664.0)
    );
    assert_eq!(
        first.value(Counter::GpuNvlinkBytes, Some("received")),
        Some(20_480.0)
    );
    assert_eq!(all.gpus[1].values, []);
}

#[test]
fn traffic_of_dcgm_is_what_its_type_says() {
    let series =
        "DCGM_FI_PROF_PCIE_RX_BYTES{gpu=\"0\"} 1206000000\nDCGM_FI_PROF_NVLINK_TX_BYTES{gpu=\"0\"} 7\n";
    let gauge = gpus(&format!("# TYPE DCGM_FI_PROF_PCIE_RX_BYTES gauge\n{series}"));
    assert_eq!(
        gauge.gpus[0].value(Counter::GpuPcieRate, Some("received")),
        Some(1.206e9)
    );
    assert_eq!(
        gauge.gpus[0].value(Counter::GpuNvlinkRate, Some("sent")),
        Some(7.0)
    );
    let counter = gpus(&format!("# TYPE DCGM_FI_PROF_PCIE_RX_BYTES counter\n{series}"));
    assert_eq!(
        counter.gpus[0].value(Counter::GpuPcieBytes, Some("received")),
        Some(1.206e9)
    );
    assert_eq!(
        counter.gpus[0].value(Counter::GpuPcieRate, Some("received")),
        None
    );
}

#[test]
fn samples_have_their_source_and_labels() {
    let all = gpus(CSV);
    let samples = all.samples(Time(5), &"a".into());
    assert!(samples.iter().all(|sample| sample.source == SampleSource::Gpu));
    for sample in &samples {
        assert_eq!(sample.details.len(), sample.counter.labels().len(), "{sample:?}");
    }
    assert_eq!(
        samples.iter().filter(|sample| &*sample.object == "gpu0").count(),
        20
    );
}

proptest! {
    /// No text gives a panic or a value that is not a finite number.
    #[test]
    fn any_text_is_read(text in ".{0,400}") {
        for start in ["", "index, uuid\n", "<?xml ?><gpu id=\"", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"", "{\"gpu_data\":["] {
            let all = gpus(&format!("{start}{text}"));
            for gpu in &all.gpus {
                prop_assert!(gpu.values.iter().all(|value| value.value.is_finite() && value.value >= 0.0));
            }
        }
    }

    /// Cells of any words: a bracketed one gives no value.
    #[test]
    fn any_cells_are_read(cells in prop::collection::vec("(\\[[A-Za-z/ ]{0,12}\\]|[0-9]{1,6}( %| MiB| W)?|N/A|0x[0-9a-f]{1,16})", QUERY.len())) {
        let all = gpus(&cells.join(", "));
        for gpu in &all.gpus {
            let bracketed = cells[4].starts_with('[');
            prop_assert!(!(bracketed && gpu.value(Counter::GpuUtilization, None).is_some()));
        }
    }
}

#[test]
fn documents_of_rocm_smi() {
    // ROCm 5 and 6, `rocm-smi -a --json`.
    let text = "{\"card0\": {\"Temperature (Sensor edge) (C)\": \"43.0\", \"Temperature (Sensor junction) (C)\": \"47.0\", \"GPU use (%)\": \"97\", \
                \"VRAM Total Memory (B)\": \"68702699520\", \"VRAM Total Used Memory (B)\": \"11005952\", \"Average Graphics Package Power (W)\": \"310.0\", \
                \"sclk clock speed:\": \"(1700Mhz)\", \"Card series\": \"AMD Instinct MI250X\", \"PCI Bus\": \"0000:C1:00.0\"}, \
                \"system\": {\"Driver version\": \"6.3.6\"}}";
    let all = gpus(text);
    assert_eq!(all.gpus.len(), 1);
    let gpu = &all.gpus[0];
    assert_eq!(
        (
            gpu.object.as_str(),
            gpu.name.as_deref(),
            gpu.pci_address.as_deref()
        ),
        ("gpu0", Some("AMD Instinct MI250X"), Some("0000:c1:00.0"))
    );
    for (counter, detail, value) in [
        (Counter::GpuUtilization, None, 0.97),
        (Counter::GpuTemperature, Some("gpu"), 47.0),
        (Counter::GpuPower, None, 310.0),
        (Counter::GpuMemoryUsed, None, 11_005_952.0),
        (Counter::GpuClock, Some("sm"), 1.7e9),
    ] {
        assert_eq!(gpu.value(counter, detail), Some(value), "{counter:?}");
    }
}

#[test]
fn documents_without_values_are_described() {
    for (text, what) in [
        (
            "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-47\t0\n",
            "nvidia-smi topo -m",
        ),
        (
            "{\"device_id\": 0, \"device_level\": [{\"metrics_type\": \"XPUM_STATS_POWER\", \"value\": 310.1}]}",
            "xpu-smi stats",
        ),
        (
            "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\n",
            "the table of nvidia-smi",
        ),
        (
            "[{\"gpu\": 0, \"bdf\": \"0000:c1:00.0\", \"uuid\": \"a4ff74a1\"}]",
            "a list or topology of amd-smi",
        ),
        (
            "==== ROCm System Management Interface ====\n",
            "the tables of rocm-smi",
        ),
    ] {
        assert!(
            described(text).is_some_and(|found| found.contains(what)),
            "{text}"
        );
        assert!(gpus(text).gpus.iter().all(|gpu| gpu.values.is_empty()), "{text}");
    }
    assert_eq!(described(CSV), None);
}
