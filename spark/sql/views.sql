-- Views that the questions share, over the tables of the dataset and `hosts`. One text for DuckDB and Spark.

-- Flows with the place of the capture: at the sender's host, at the receiver's, or elsewhere.
CREATE OR REPLACE TEMP VIEW sides AS
SELECT
    f.*,
    s.host AS source_host, s.rack AS source_rack, s.job AS source_job, s.job_rank AS source_rank,
    d.host AS destination_host, d.rack AS destination_rack, d.job AS destination_job, d.job_rank AS destination_rank,
    substr(CAST(f.first_time AS STRING), 1, 10) AS day,
    CASE WHEN f.host = s.host THEN 'sender' WHEN f.host = d.host THEN 'receiver' ELSE 'elsewhere' END AS side
FROM flows f
LEFT JOIN hosts s ON s.address = f.source
LEFT JOIN hosts d ON d.address = f.destination
WHERE f.counted;

-- The timeline of these flows.
CREATE OR REPLACE TEMP VIEW bins AS
SELECT
    t.*,
    substr(CAST(t.time AS STRING), 1, 10) AS day,
    s.source, s.destination, s.source_host, s.source_rack, s.destination_host, s.destination_rack, s.side, s.path_mtu
FROM timeline t
JOIN sides s ON s.run_id = t.run_id AND s.flow_id = t.flow_id AND s.tap = t.tap AND s.epoch = t.epoch;
