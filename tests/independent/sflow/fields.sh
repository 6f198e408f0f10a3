#!/bin/sh
# What tshark says of the samples of a capture, one line for each datagram: `fields.sh CAPTURE > FILE`.
tshark -r "$1" -d udp.port==6343,sflow -T fields -E header=y -E aggregator=, \
    -e frame.number -e sflow_245.agent -e sflow_245.agent.v6 -e sflow_245.sub_agent_id -e sflow_245.sequence_number \
    -e sflow.flow_sample.sequence_number -e sflow.flow_sample.source_id_index -e sflow.flow_sample.index \
    -e sflow.flow_sample.sampling_rate -e sflow.flow_sample.sample_pool -e sflow.flow_sample.dropped_packets \
    -e sflow.flow_sample.input_interface -e sflow.flow_sample.output_interface \
    -e sflow.flow_sample.input_interface_value -e sflow.flow_sample.output_interface_value \
    -e infiniband.bth.opcode -e ip.dsfield.ecn -e ip.src -e ip.dst
