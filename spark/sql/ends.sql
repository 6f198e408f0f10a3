-- Two ends of each flow: packets that left the sender's host less those that came to the receiver's, by window of a second.
--
-- When a window ends, some packets are under way, if the flow goes on: at most as many as are unacknowledged, and at most those of the
-- last bin. lost is what these cannot explain.
WITH settings AS (
    SELECT 1000000000 AS window_ns, 10000000 AS edge_ns
),
marked AS (
    SELECT
        b.run_id, b.flow_id, b.source, b.destination, b.source_host, b.destination_host, b.side, b.time, b.time_ns,
        b.packets, b.ce, b.retransmitted_packets, b.path_mtu, b.inflight_bytes_max AS inflight_bytes,
        b.time_ns - b.time_ns % (SELECT window_ns FROM settings) AS window_ns,
        max(b.time_ns) OVER (
            PARTITION BY b.flow_id, b.side, b.time_ns - b.time_ns % (SELECT window_ns FROM settings)) AS last_ns
    FROM bins b
    WHERE b.side IN ('sender', 'receiver')
),
windows AS (
    SELECT
        flow_id, source, destination, source_host, destination_host, side, window_ns, last_ns,
        max(run_id) AS run_id,
        min(substr(CAST(time AS STRING), 1, 19)) AS start_second,
        min(time_ns) AS first_ns,
        CAST(sum(packets) AS BIGINT) AS packets,
        CAST(sum(ce) AS BIGINT) AS ce,
        CAST(sum(retransmitted_packets) AS BIGINT) AS retransmitted_packets,
        CAST(sum(CASE WHEN time_ns = last_ns THEN packets END) AS BIGINT) AS last_packets,
        CAST(ceil(CAST(sum(CASE WHEN time_ns = last_ns THEN inflight_bytes END) AS DOUBLE) / CAST(max(path_mtu) AS DOUBLE)) AS BIGINT)
            AS unacknowledged
    FROM marked
    GROUP BY flow_id, source, destination, source_host, destination_host, side, window_ns, last_ns
),
captures AS (
    SELECT run_id, max(last_time_ns) AS end_ns
    FROM run
    GROUP BY run_id
),
senders AS (
    SELECT
        w.*,
        coalesce(lead(w.window_ns) OVER (PARTITION BY w.flow_id ORDER BY w.window_ns) = w.window_ns + (SELECT window_ns FROM settings), false)
            OR c.end_ns - w.last_ns < (SELECT edge_ns FROM settings) AS goes_on
    FROM windows w
    JOIN captures c ON c.run_id = w.run_id
    WHERE w.side = 'sender'
),
both_ends AS (
    SELECT
        s.start_second, s.window_ns, s.flow_id, s.source, s.destination, s.source_host, s.destination_host,
        s.packets AS sent, r.packets AS arrived,
        CASE WHEN s.goes_on THEN least(coalesce(s.unacknowledged, s.last_packets), s.last_packets) ELSE 0 END AS under_way,
        s.retransmitted_packets, r.ce,
        abs(s.first_ns - r.first_ns) > (SELECT edge_ns FROM settings) OR abs(s.last_ns - r.last_ns) > (SELECT edge_ns FROM settings) AS at_edge
    FROM senders s
    JOIN windows r ON r.flow_id = s.flow_id AND r.window_ns = s.window_ns AND r.side = 'receiver'
)
SELECT
    start_second, flow_id, source, destination, source_host, destination_host, sent, arrived, under_way,
    greatest(sent - arrived - under_way, 0) AS lost,
    round(CAST(greatest(sent - arrived - under_way, 0) AS DOUBLE) / CAST(sent AS DOUBLE), 6) AS lost_share,
    retransmitted_packets, ce, at_edge
FROM both_ends
ORDER BY lost DESC, ce DESC, sent DESC, window_ns, flow_id
