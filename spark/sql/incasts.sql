-- Incasts: several hosts that send to one destination within the same millisecond, seen at the senders' hosts.
--
-- Milliseconds that follow each other are one incast. What its receiver saw of it is beside it, where the receiver was captured.
WITH settings AS (
    SELECT 3 AS min_senders
),
sent AS (
    SELECT
        destination, destination_host, host AS sender, source_rack, substr(CAST(time AS STRING), 1, 19) AS second,
        time_ns - time_ns % 1000000 AS millisecond_ns,
        payload_bytes, retransmitted_packets
    FROM bins
    WHERE side = 'sender' AND payload_bytes > 0
),
crowded AS (
    SELECT destination, millisecond_ns, count(DISTINCT sender) AS senders
    FROM sent
    GROUP BY destination, millisecond_ns
    HAVING count(DISTINCT sender) >= (SELECT min_senders FROM settings)
),
numbered AS (
    SELECT *, millisecond_ns - 1000000 * row_number() OVER (PARTITION BY destination ORDER BY millisecond_ns) AS island
    FROM crowded
),
incasts AS (
    SELECT destination, min(millisecond_ns) AS start_time_ns, max(millisecond_ns) + 1000000 AS end_time_ns, max(senders) AS senders_at_once
    FROM numbered
    GROUP BY destination, island
),
senders AS (
    SELECT
        i.destination, i.start_time_ns, max(s.destination_host) AS host, min(s.second) AS start_second,
        count(DISTINCT s.sender) AS senders, count(DISTINCT s.source_rack) AS racks,
        CAST(sum(s.payload_bytes) AS BIGINT) AS payload_bytes,
        CAST(sum(s.retransmitted_packets) AS BIGINT) AS retransmitted_packets
    FROM incasts i
    JOIN sent s ON s.destination = i.destination AND s.millisecond_ns >= i.start_time_ns AND s.millisecond_ns < i.end_time_ns
    GROUP BY i.destination, i.start_time_ns
),
receivers AS (
    SELECT
        i.destination, i.start_time_ns,
        CAST(sum(b.data_packets) AS BIGINT) AS arrived, CAST(sum(b.ce) AS BIGINT) AS ce, CAST(sum(b.missing) AS BIGINT) AS missing,
        max(b.run_id) AS run_id
    FROM incasts i
    JOIN bins b ON b.destination = i.destination AND b.time_ns >= i.start_time_ns AND b.time_ns < i.end_time_ns
    WHERE b.side = 'receiver'
    GROUP BY i.destination, i.start_time_ns
)
SELECT
    s.start_second, i.start_time_ns, i.end_time_ns, i.destination, s.host, s.senders, i.senders_at_once, s.racks, s.payload_bytes, s.retransmitted_packets,
    r.arrived, r.ce, round(CAST(r.ce AS DOUBLE) / CAST(nullif(r.arrived, 0) AS DOUBLE), 4) AS ce_share, r.missing, r.run_id
FROM incasts i
JOIN senders s ON s.destination = i.destination AND s.start_time_ns = i.start_time_ns
LEFT JOIN receivers r ON r.destination = i.destination AND r.start_time_ns = i.start_time_ns
ORDER BY i.senders_at_once DESC, r.ce DESC NULLS LAST, i.start_time_ns, i.destination
