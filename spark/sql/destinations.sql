-- Congested destinations by hour.
--
-- Each destination is seen at its own host where that was captured (seen_at = 'receiver'), else at the hosts of its senders.
WITH by_side AS (
    SELECT
        substr(CAST(date_trunc('hour', time) AS STRING), 1, 16) AS hour,
        destination,
        max(destination_host) AS host,
        max(destination_rack) AS rack,
        side AS seen_at,
        count(DISTINCT source) AS senders,
        max(senders_to_destination) AS senders_at_once,
        CAST(sum(data_packets) AS BIGINT) AS data_packets,
        CAST(sum(ce) AS BIGINT) AS ce,
        CAST(sum(cnp) AS BIGINT) AS cnp,
        CAST(sum(missing) AS BIGINT) AS missing,
        CAST(sum(retransmitted_packets) AS BIGINT) AS retransmitted_packets,
        substr(max(lpad(CAST(ce + missing + retransmitted_packets AS STRING), 20, '0') || run_id), 21) AS run_id
    FROM bins
    WHERE side IN ('receiver', 'sender')
    GROUP BY 1, destination, side
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY hour, destination ORDER BY seen_at) AS place
    FROM by_side
)
SELECT
    hour, destination, host, rack, seen_at, senders, senders_at_once, data_packets, ce,
    round(CAST(ce AS DOUBLE) / CAST(nullif(data_packets, 0) AS DOUBLE), 4) AS ce_share,
    cnp, missing, retransmitted_packets, run_id
FROM ranked
WHERE place = 1 AND (ce > 0 OR missing > 0 OR retransmitted_packets > 0)
ORDER BY ce DESC, retransmitted_packets DESC, missing DESC, hour, destination
