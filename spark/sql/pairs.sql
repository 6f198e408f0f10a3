-- Pairs of hosts against their own last seven days.
--
-- The sender's host shows rate, retransmissions and round trips, the receiver's host marks. A day is compared with the mean of
-- the days among the seven before it on which the pair was captured.
WITH settings AS (
    SELECT CAST(86400000000000 AS BIGINT) AS day_ns
),
moments AS (
    SELECT
        time_ns - time_ns % (SELECT day_ns FROM settings) AS day_ns, min(day) AS day, source, destination,
        substr(max(CASE WHEN side = 'sender' THEN lpad(CAST(retransmitted_packets + coalesce(cnp, 0) AS STRING), 20, '0') || run_id END), 21) AS run_id,
        max(source_host) AS source_host, max(destination_host) AS destination_host,
        count(DISTINCT CASE WHEN side = 'sender' AND payload_bytes > 0 THEN time_ns - time_ns % 1000000 END) AS active_ms,
        sum(CASE WHEN side = 'sender' THEN payload_bytes - retransmitted_bytes END) AS new_bytes,
        sum(CASE WHEN side = 'sender' THEN data_packets END) AS sent,
        sum(CASE WHEN side = 'sender' THEN retransmitted_packets END) AS retransmitted,
        sum(CASE WHEN side = 'receiver' THEN data_packets END) AS arrived,
        sum(CASE WHEN side = 'receiver' THEN ce END) AS ce
    FROM bins
    WHERE side IN ('sender', 'receiver')
    GROUP BY 1, source, destination
    HAVING sum(data_packets) > 0
),
round_trips AS (
    SELECT
        first_time_ns - first_time_ns % (SELECT day_ns FROM settings) AS day_ns, source, destination,
        sum(CAST(ack_rtt_p50_ns AS DOUBLE) * CAST(ack_rtt_count AS DOUBLE)) / sum(CAST(ack_rtt_count AS DOUBLE)) AS rtt_ns
    FROM sides
    WHERE side = 'sender' AND ack_rtt_count > 0
    GROUP BY 1, source, destination
),
days AS (
    SELECT
        m.*,
        CAST(m.new_bytes AS DOUBLE) * 8e3 / CAST(nullif(m.active_ms, 0) AS DOUBLE) AS rate_bps,
        CAST(m.retransmitted AS DOUBLE) / CAST(nullif(m.sent, 0) AS DOUBLE) AS retransmitted_share,
        CAST(m.ce AS DOUBLE) / CAST(nullif(m.arrived, 0) AS DOUBLE) AS ce_share,
        r.rtt_ns
    FROM moments m
    LEFT JOIN round_trips r ON r.day_ns = m.day_ns AND r.source = m.source AND r.destination = m.destination
),
compared AS (
    SELECT
        d.day, d.run_id, d.day_ns, d.source, d.destination, d.source_host, d.destination_host,
        d.rate_bps, d.retransmitted_share, d.ce_share, d.rtt_ns,
        count(b.day_ns) AS days_before,
        avg(b.rate_bps) AS week_rate_bps,
        avg(b.retransmitted_share) AS week_retransmitted_share,
        avg(b.ce_share) AS week_ce_share,
        avg(b.rtt_ns) AS week_rtt_ns
    FROM days d
    JOIN days b ON b.source = d.source AND b.destination = d.destination
        AND b.day_ns < d.day_ns AND b.day_ns >= d.day_ns - 7 * (SELECT day_ns FROM settings)
    GROUP BY d.day, d.run_id, d.day_ns, d.source, d.destination, d.source_host, d.destination_host, d.rate_bps, d.retransmitted_share, d.ce_share, d.rtt_ns
),
judged AS (
    SELECT
        *,
        CASE WHEN rate_bps < week_rate_bps * 8e-1 THEN 1 ELSE 0 END AS is_slower,
        CASE WHEN retransmitted_share > week_retransmitted_share * 2e0 + 1e-3 THEN 1 ELSE 0 END AS retransmits_more,
        CASE WHEN ce_share > week_ce_share * 2e0 + 1e-2 THEN 1 ELSE 0 END AS is_marked_more,
        CASE WHEN rtt_ns > week_rtt_ns * 15e-1 THEN 1 ELSE 0 END AS takes_longer
    FROM compared
)
SELECT
    day, source_host, destination_host, source, destination, days_before,
    is_slower + retransmits_more + is_marked_more + takes_longer AS worse_in,
    concat_ws(', ',
        CASE WHEN is_slower = 1 THEN 'rate' END,
        CASE WHEN retransmits_more = 1 THEN 'retransmissions' END,
        CASE WHEN is_marked_more = 1 THEN 'marks' END,
        CASE WHEN takes_longer = 1 THEN 'round trip' END) AS worse,
    CAST(round(rate_bps / 1e6) AS BIGINT) AS rate_mbps,
    CAST(round(week_rate_bps / 1e6) AS BIGINT) AS week_rate_mbps,
    round(retransmitted_share, 6) AS retransmitted_share,
    round(week_retransmitted_share, 6) AS week_retransmitted_share,
    round(ce_share, 6) AS ce_share,
    round(week_ce_share, 6) AS week_ce_share,
    CAST(round(rtt_ns) AS BIGINT) AS rtt_ns,
    CAST(round(week_rtt_ns) AS BIGINT) AS week_rtt_ns,
    run_id
FROM judged
ORDER BY worse_in DESC, retransmitted_share DESC NULLS LAST, ce_share DESC NULLS LAST, day_ns DESC, source, destination
