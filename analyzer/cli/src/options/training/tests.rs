use super::*;

#[test]
fn the_built_in_form() {
    let pattern = Pattern::built_in().unwrap();
    let read = |line| pattern.read(line);
    assert_eq!(
        read("Iteration 10 | Loss: 2.3145 | Compute: 98.1ms | AllReduce: 45.2ms | Total: 156.3ms"),
        Some(LoggedTimes {
            step: 10,
            allreduce: Some(Span(45_200_000)),
            total: Some(Span(156_300_000))
        })
    );
    assert_eq!(
        read("[rank0]: Iteration 11 | AllReduce: 7 ms\n"),
        Some(LoggedTimes {
            step: 11,
            allreduce: Some(Span(7_000_000)),
            total: None
        })
    );
    for other in [
        "",
        "Iteration ten | AllReduce: 1ms",
        "Iteration 10 | AllReduce: soon",
        "Epoch 3",
    ] {
        assert_eq!(read(other), None, "{other}");
    }
}

/// Megatron-LM `training.py`, nanoGPT `train.py`, DeepSpeed's engine and scripts of DDP, with made-up values.
#[test]
fn lines_of_known_scripts() {
    let pattern = Pattern::built_in().unwrap();
    let times = |line: &str| {
        let found = pattern.read(line)?;
        let us = |time: Option<Span>| time.map(|time| time.0 / 1_000);
        Some((found.step, us(found.allreduce), us(found.total)))
    };
    for (line, expected) in [
        (
            " iteration      100/  500000 | consumed samples:        25600 | elapsed time per iteration (ms): 1234.5 | learning rate: 1.5E-04 | lm loss: 2.31 |",
            (100, None, Some(1_234_500)),
        ),
        (
            "iter 10: loss 2.3145, time 156.30ms, mfu 12.30%",
            (10, None, Some(156_300)),
        ),
        (
            "step   10 | loss: 2.31 | lr 6.0e-04 | norm: 0.29 | dt: 330.10ms | tok/sec: 1588",
            (10, None, Some(330_100)),
        ),
        (
            "[rank0]: Step: 10, loss=2.31, all_reduce_time=0.0452s, step_time=0.1563s",
            (10, Some(45_200), Some(156_300)),
        ),
        (
            "0: Epoch 3 Step 10 | grad sync (ms): 45.2 | total (ms): 156.3",
            (10, Some(45_200), Some(156_300)),
        ),
        (
            "2026-11-25 18:00:01,123 step=10 allreduce=45.2 ms",
            (10, Some(45_200), None),
        ),
    ] {
        assert_eq!(times(line), Some(expected), "{line}");
    }
    for other in [
        "step 10: train loss 2.31, val loss 2.40",
        "iter 10: loss 2.31, time 5",
        "Saving checkpoint at iteration 10",
    ] {
        assert_eq!(times(other), None, "{other}");
    }
    let log = " iteration 1/ 5 | elapsed time per iteration (ms): 156.3 | loss: 1 |\n(min, max) time across ranks (ms):\n    all-grads-sync ......: (44.10, 45.20)\n";
    let found = steps(Path::new("x"), log.as_bytes(), &pattern).unwrap();
    assert_eq!((found.len(), found[0].allreduce), (1, Some(Span(45_200_000))));
    assert_eq!(
        pattern.later("[2026-11-25 18:00:01,123] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 12.30 | bwd_allreduce: 45.20 | step: 3.1"),
        Some((Span(45_200_000), true))
    );
}

#[test]
fn logs_of_trainers() {
    let pattern = Pattern::built_in().unwrap();
    let read = |log: &str| -> Vec<(u64, Option<u64>, Option<u64>)> {
        let found = steps(Path::new("x"), log.as_bytes(), &pattern).unwrap();
        let micros = |time: Option<Span>| time.map(|time| time.0 / 1_000);
        found
            .into_iter()
            .map(|one| (one.step, micros(one.allreduce), micros(one.total)))
            .collect()
    };
    // Python's dictionary, and JSON.
    let dictionary = "{'loss': 2.3, 'epoch': 0.1, 'step': 1, 'step_time_ms': 2.3, 'allreduce_ms': 0.5}\n";
    assert_eq!(read(dictionary), [(1, Some(500), Some(2_300))]);
    // timm; nanotron; fairseq, whose `ups` are updates in a second: 1 s / 400.
    let line = "Train: 0 [  50/1251 (  4%)]  Loss: 6.94 (6.95)  Time: 0.0025s, 102400.00/s  (0.0026s, 98400.00/s)  LR: 1.000e-05  Data: 0.000 (0.000)\n";
    assert_eq!(read(line), [(50, None, Some(2_500))]);
    let line = "[INFO|DP=0|PP=0|TP=0|n1]: iteration: 2 / 1000 | consumed_tokens: 5.24M | elapsed_time_per_iteration_ms: 2.53 | tokens_per_sec: 2.1M | lm_loss: 10.1\n";
    assert_eq!(read(line), [(2, None, Some(2_530))]);
    let line = "2026-01-01 00:00:00 | INFO | train_inner | epoch 001:      1 / 500 loss=8.1, wps=813000, ups=400, wpb=2048, bsz=64, num_updates=12, lr=1e-05, wall=3\n";
    assert_eq!(read(line), [(12, None, Some(2_500))]);
    let line = "2026-01-01 00:00:00 | INFO | train_inner | {\"epoch\": 1, \"loss\": \"8.1\", \"ups\": \"0.5\", \"num_updates\": \"3\", \"wall\": \"9\"}\n";
    assert_eq!(read(line), [(3, None, Some(2_000_000))]);
    // Docker's own document around a line.
    let docker = "{\"log\":\"step=7 allreduce_ms=0.5 total_ms=2.5\\n\",\"stream\":\"stdout\",\"time\":\"2026-05-01T10:00:00Z\"}\n";
    assert_eq!(read(docker), [(7, Some(500), Some(2_500))]);
    let json = "{\"step\": 7, \"loss\": 2.1, \"all_reduce_time_ms\": 4.1, \"total_ms\": 20.5}\n";
    assert_eq!(read(json), [(7, Some(4_100), Some(20_500))]);
    // tqdm: 4 steps in a second are 250 ms each; the same step twice.
    let bar = " 10%|#         | 100/1000 [00:30<04:30,  4.00it/s]\r 10%|#         | 100/1000 [00:30<04:30,  4.00it/s, loss=2.3]\r 11%|#1        | 110/1000 [00:33<04:30,  2.00s/it]\n";
    assert_eq!(
        read(bar),
        [(100, None, Some(250_000)), (110, None, Some(2_000_000))]
    );
    let lightning = "Epoch 0:  50%|#####     | 50/100 [00:10<00:10,  5.00it/s, v_num=0, train_loss=2.30]\n";
    assert_eq!(read(lightning), [(50, None, Some(200_000))]);
    // PyTorch's ImageNet example, and MMEngine.
    let example = "Epoch: [0][ 10/5005]\tTime  0.345 ( 0.512)\tData  0.001 ( 0.100)\tLoss 6.9e+00\n";
    assert_eq!(read(example), [(10, None, Some(345_000))]);
    let engine = "05/01 10:00:00 - mmengine - INFO - Epoch(train) [1][ 10/100]  lr: 1.0e-04  eta: 0:01:00  time: 0.2345  data_time: 0.01  loss: 2.3\n";
    assert_eq!(read(engine), [(10, None, Some(234_500))]);
    // DeepSpeed: a line with the step, then one with its times.
    let head = "[2026-11-25 18:00:01,123] [INFO] [logging.py:96:log_dist] [Rank 0] ";
    let deep = format!(
        "{head}step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]\n{head}time (ms) | fwd: 12.30 | bwd_allreduce: 45.20 | step: 3.1\n\
                        {head}step=20, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]\n{head}time (ms) | fwd: 12.30 | bwd_allreduce: 46.20 | step: 3.1\n"
    );
    assert_eq!(read(&deep), [(10, Some(45_200), None), (20, Some(46_200), None)]);
}

#[test]
fn patterns_name_their_units() {
    let pattern = Pattern::parse(r"step=(?<step>\d+) comm=(?<allreduce_us>\S+) all=(?<total_s>\S+)").unwrap();
    assert_eq!(
        pattern.read("step=3 comm=1500.5 all=0.25"),
        Some(LoggedTimes {
            step: 3,
            allreduce: Some(Span(1_500_500)),
            total: Some(Span(250_000_000))
        })
    );
    // Values that are no numbers, or out of range, are ignored.
    assert_eq!(pattern.read("step=3 comm=inf all=-1"), None);
    assert_eq!(pattern.read("step=99999999999999999999 comm=1 all=1"), None);
}

#[test]
fn patterns_that_say_nothing_are_refused() {
    for wrong in ["(", "(?<step>x)", "(?<total_ms>x)", "(?<step>x)(?<total_h>y)"] {
        assert!(Pattern::parse(wrong).is_err(), "{wrong}");
    }
}

/// MaxText, NeMo, DeepSpeed's ThroughputTimer and scripts of their own, with made-up values.
#[test]
fn times_behind_steps_and_keys_with_their_unit() {
    let pattern = Pattern::built_in().unwrap();
    for (line, step, total_us) in [
        ("Step 4: 21.5 ms", 4, 21_500),
        ("[rank2]: step 4: 21.5 ms", 4, 21_500),
        ("1: Step 4: 21 ms", 4, 21_000),
        ("step 4/900 took 0.0215 s", 4, 21_500),
        ("step 4 finished in 22 ms", 4, 22_000),
        (
            "steps: 40 loss: 8.1 iter time (s): 0.022 samples/sec: 512.0",
            40,
            22_000,
        ),
        (
            "completed step: 7, seconds: 0.031, TFLOP/s/device: 301.2, loss: 2.1",
            7,
            31_000,
        ),
        (
            "Epoch 0: | train_step_timing in s: 0.025, global_step: 9, reduced_train_loss: 2.1",
            9,
            25_000,
        ),
        ("Training Epoch: 0 step 9 iteration_time=0.0215", 9, 21_500),
        ("{'loss': 2.1, 'step': 9, 'step_time': 0.02150}", 9, 21_500),
    ] {
        let found = pattern.read(line).unwrap_or_else(|| panic!("not read: {line}"));
        assert_eq!(
            (found.step, found.total),
            (step, Some(Span(total_us * 1_000))),
            "{line}"
        );
    }
    // A number without a unit may be milliseconds, and a loss is no time.
    for line in [
        "step 9 step_time=215.0",
        "step 9: loss 2.15",
        "step 9/900",
        "Step 4: 21.5",
    ] {
        assert_eq!(pattern.read(line), None, "{line}");
    }
}

/// DeepSpeed's lines with `wall_clock_breakdown` have no number, and `step` is the time of the optimizer there.
#[test]
fn steps_of_deepspeed_are_counted() {
    let line = |time: &str| {
        format!(
            "[2026-01-01 00:00:01,100] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 1.00 | bwd: 1.20 | bwd_allreduce: {time} | step: 0.30\n"
        )
    };
    let parts = line("0.20")
        .replace("fwd:", "fwd_microstep:")
        .replace("allreduce:", "allreduce_microstep:");
    let log = format!("{parts}{}{parts}{}", line("0.55"), line("0.65"));
    let read = steps(Path::new("x"), log.as_bytes(), &Pattern::built_in().unwrap()).unwrap();
    let numbers: Vec<(u64, Option<Span>)> = read.iter().map(|step| (step.step, step.allreduce)).collect();
    assert_eq!(numbers, [(0, Some(Span(550_000))), (1, Some(Span(650_000)))]);
}
