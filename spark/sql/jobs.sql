-- Jobs by the time that they lost to the network.
--
-- A job is a communicator of NCCL where a log was read (--nccl-log), else the job that both hosts have in `hosts`. A step that took
-- longer than usual (steps.outlier) lost the time beyond the median of its pair: of all pairs the longest counts, because the others wait.
WITH members AS (
    SELECT
        run_id, source, destination, coalesce(communicator, source_job) AS job,
        min(source_host) || coalesce(' (rank ' || CAST(min(coalesce(rank, source_rank)) AS STRING) || ')', '') AS sender,
        min(destination_host) || coalesce(' (rank ' || CAST(min(coalesce(peer_rank, destination_rank)) AS STRING) || ')', '') AS receiver
    FROM sides
    WHERE communicator IS NOT NULL OR source_job = destination_job
    GROUP BY run_id, source, destination, coalesce(communicator, source_job)
),
seen AS (
    SELECT
        s.run_id, m.job, s.step, s.host_a, s.host_b, s.duration_ns, s.outlier,
        m.sender || ' - ' || m.receiver AS pair,
        substr(CAST(s.start_time AS STRING), 1, 10) AS day
    FROM steps s
    JOIN members m ON m.run_id = s.run_id AND m.source = s.host_a AND m.destination = s.host_b
),
usual AS (
    SELECT run_id, host_a, host_b, median(duration_ns) AS usual_ns
    FROM seen
    GROUP BY run_id, host_a, host_b
),
slow AS (
    SELECT
        s.job, s.day, s.step, s.pair,
        max(CASE WHEN s.outlier THEN greatest(CAST(s.duration_ns AS DOUBLE) - u.usual_ns, 0e0) ELSE 0e0 END) AS lost_ns
    FROM seen s
    JOIN usual u ON u.run_id = s.run_id AND u.host_a = s.host_a AND u.host_b = s.host_b
    GROUP BY s.job, s.day, s.step, s.pair
),
by_step AS (
    SELECT job, day, step, max(lost_ns) AS lost_ns, max(CASE WHEN place = 1 THEN pair END) AS pair
    FROM (SELECT *, row_number() OVER (PARTITION BY job, day, step ORDER BY lost_ns DESC, pair) AS place FROM slow)
    GROUP BY job, day, step
),
step_time AS (
    SELECT
        job, day, count(*) AS steps,
        sum(CASE WHEN lost_ns > 0e0 THEN 1 ELSE 0 END) AS slow_steps,
        sum(lost_ns) AS slow_ns,
        substr(max(lpad(CAST(CAST(lost_ns AS BIGINT) AS STRING), 20, '0') || pair), 21) AS slowest_pair
    FROM by_step
    GROUP BY job, day
),
traffic AS (
    SELECT
        coalesce(communicator, source_job) AS job, day,
        count(DISTINCT source_host) AS hosts,
        sum(CASE WHEN side = 'sender' THEN payload_bytes END) AS payload_bytes,
        sum(CASE WHEN side = 'sender' THEN retransmitted_bytes END) AS retransmitted_bytes,
        sum(CASE WHEN side = 'sender' THEN runs_timeout END) AS timeouts,
        sum(CASE WHEN side = 'sender' THEN pause_ns END) AS pause_ns,
        sum(CASE WHEN side = 'receiver' THEN ce END) AS ce,
        sum(CASE WHEN side = 'receiver' THEN data_packets END) AS arrived
    FROM sides
    WHERE communicator IS NOT NULL OR source_job = destination_job
    GROUP BY coalesce(communicator, source_job), day
)
SELECT
    t.job, t.day, t.hosts, s.steps, CAST(s.slow_steps AS BIGINT) AS slow_steps,
    CAST(round(s.slow_ns) AS BIGINT) AS slow_ns,
    CASE WHEN s.slow_steps > 0 THEN s.slowest_pair END AS slowest_pair,
    CAST(t.pause_ns AS BIGINT) AS pause_ns,
    CAST(t.timeouts AS BIGINT) AS timeouts,
    CAST(t.payload_bytes AS BIGINT) AS payload_bytes,
    CAST(t.retransmitted_bytes AS BIGINT) AS retransmitted_bytes,
    round(CAST(t.ce AS DOUBLE) / CAST(nullif(t.arrived, 0) AS DOUBLE), 6) AS ce_share
FROM traffic t
LEFT JOIN step_time s ON s.job = t.job AND s.day = t.day
ORDER BY s.slow_ns DESC NULLS LAST, t.retransmitted_bytes DESC NULLS LAST, t.job, t.day
