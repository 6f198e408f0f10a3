-- Aggressors and victims by rack: from which racks congested destinations got their bytes, and who suffered there.
--
-- Episodes at the receiver's own host. Of the hosts that sent in one: an aggressor sent 1.5 times its fair part or more, a victim
-- shows signs (marks, CNPs, missing or retransmitted packets) and sent less than half of its fair part.
WITH congested AS (
    SELECT e.run_id, e.tap, e.episode, e.start_time_ns, e.end_time_ns, e.destination, h.rack AS destination_rack
    FROM episodes e
    JOIN hosts h ON h.address = e.destination AND h.host = e.host
    WHERE e.kind IN ('ecn', 'incast', 'loss')
),
parts AS (
    SELECT
        c.run_id, c.tap, c.episode, c.destination_rack, b.source, max(b.source_rack) AS source_rack,
        sum(b.payload_bytes) AS payload_bytes, sum(b.ce) AS ce, sum(b.retransmitted_packets) AS retransmitted_packets,
        sum(b.ce + coalesce(b.cnp, 0) + b.missing + b.retransmitted_packets) AS signs
    FROM congested c
    JOIN bins b ON b.run_id = c.run_id AND b.tap = c.tap AND b.destination = c.destination
        AND b.time_ns >= c.start_time_ns AND b.time_ns < c.end_time_ns
    GROUP BY c.run_id, c.tap, c.episode, c.destination_rack, b.source
    HAVING sum(b.payload_bytes) > 0
),
shares AS (
    SELECT
        *,
        sum(payload_bytes) OVER (PARTITION BY run_id, tap, episode) AS all_bytes,
        count(*) OVER (PARTITION BY run_id, tap, episode) AS all_senders
    FROM parts
),
roles AS (
    SELECT
        *,
        CASE WHEN all_senders > 1 AND payload_bytes * all_senders * 2 >= all_bytes * 3 THEN 1 ELSE 0 END AS is_aggressor,
        CASE WHEN signs > 0 AND payload_bytes * all_senders * 2 < all_bytes THEN 1 ELSE 0 END AS is_victim
    FROM shares
)
SELECT
    source_rack, destination_rack,
    count(DISTINCT run_id || ' ' || CAST(tap AS STRING) || ' ' || CAST(episode AS STRING)) AS episodes,
    count(DISTINCT source) AS senders,
    CAST(sum(is_aggressor) AS BIGINT) AS aggressors,
    CAST(sum(is_victim) AS BIGINT) AS victims,
    CAST(sum(payload_bytes) AS BIGINT) AS payload_bytes,
    round(CAST(sum(payload_bytes) AS DOUBLE) / CAST(sum(sum(payload_bytes)) OVER (PARTITION BY destination_rack) AS DOUBLE), 4) AS share_of_bytes,
    CAST(sum(ce) AS BIGINT) AS ce,
    CAST(sum(retransmitted_packets) AS BIGINT) AS retransmitted_packets
FROM roles
GROUP BY source_rack, destination_rack
ORDER BY aggressors DESC, victims DESC, payload_bytes DESC, source_rack, destination_rack
