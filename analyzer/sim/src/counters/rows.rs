//! Rows of the table `samples` from readings of counters.

use roce_model::{Sample, SampleRow, SampleSeries};

use super::{Counters, PortReading, Samples, host, switch};

impl Counters {
    /// The rows of the table `samples`, in the order of time. Those of the first reading have no change.
    pub fn rows(&self) -> impl Iterator<Item = SampleRow> {
        let mut series = SampleSeries::default();
        let priorities = self.priorities();
        self.readings
            .iter()
            .flat_map(move |reading| self.samples(reading, &priorities))
            .map(move |sample| series.row(&sample, None))
    }

    fn samples(&self, reading: &PortReading, priorities: &[u8]) -> Vec<Sample> {
        let mut samples = Samples::default();
        for (place, port) in self.ports.iter().enumerate() {
            let peer = &reading.counts[port.peer];
            let own = &reading.counts[place];
            samples.begin(port, reading.time);
            if port.is_host {
                host::samples(&mut samples, own, peer, priorities);
            } else {
                let depths = &reading.depths[place];
                switch::samples(&mut samples, port, own, depths, priorities);
            }
        }
        samples.all
    }
}
