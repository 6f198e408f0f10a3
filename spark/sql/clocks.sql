-- Clocks that disagree: each host's clock against those of the hosts that it speaks with, by day.
--
-- The first packets of both directions of a connection passed both hosts. The offset is half of the difference of the two delays that
-- the hosts' times give, and wrong by at most half of their sum. A clock is bad if it disagrees with more than half of its peers.
WITH settings AS (
    SELECT 10000 AS bad_ns
),
both_ends AS (
    SELECT
        s.day, s.flow_id, s.peer_flow_id, s.source_host, s.destination_host,
        r.first_time_ns - s.first_time_ns AS delay_ns
    FROM sides s
    JOIN sides r ON r.flow_id = s.flow_id AND r.epoch = s.epoch AND r.day = s.day
        AND coalesce(r.first_psn, 0) = coalesce(s.first_psn, 0)
    WHERE s.side = 'sender' AND r.side = 'receiver' AND s.source_host <> s.destination_host
),
connections AS (
    SELECT
        a.day, a.source_host AS host, a.destination_host AS peer,
        (b.delay_ns - a.delay_ns) / 2e0 AS ahead_ns,
        (b.delay_ns + a.delay_ns) / 2e0 AS within_ns
    FROM both_ends a
    JOIN both_ends b ON b.flow_id = a.peer_flow_id AND b.day = a.day
),
best AS (
    SELECT *, row_number() OVER (PARTITION BY day, host, peer ORDER BY within_ns, ahead_ns) AS place
    FROM connections
    WHERE within_ns >= 0e0
),
judged AS (
    SELECT
        *,
        CASE WHEN abs(ahead_ns) > (SELECT bad_ns FROM settings) + within_ns THEN 1 ELSE 0 END AS disagrees,
        row_number() OVER (PARTITION BY day, host ORDER BY abs(ahead_ns), peer) AS nearness
    FROM best
    WHERE place = 1
),
clocks AS (
    SELECT
        day, host, count(*) AS peers, CAST(sum(disagrees) AS BIGINT) AS disagreeing_peers,
        sum(disagrees) * 2 > count(*) AS is_bad,
        CAST(round(max(CASE WHEN nearness = 1 THEN ahead_ns END)) AS BIGINT) AS ahead_ns,
        CAST(round(max(CASE WHEN nearness = 1 THEN within_ns END)) AS BIGINT) AS within_ns,
        max(CASE WHEN nearness = 1 THEN peer END) AS nearest_peer
    FROM judged
    GROUP BY day, host
)
SELECT day, host, is_bad, peers, disagreeing_peers, ahead_ns, within_ns, nearest_peer
FROM clocks
ORDER BY is_bad DESC, disagreeing_peers DESC, abs(ahead_ns) DESC, day, host
