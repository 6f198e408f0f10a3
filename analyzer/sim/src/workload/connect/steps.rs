//! Steps of a run: the tables of connections.

use crate::engine::events::{EndpointId, Event};
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::scenario::{FlowTable, Scenario, ServiceName};
use crate::units::Picos;
use crate::workload::requester::Failure;

impl<'s> Simulation<'s> {
    /// The flow table of a connection.
    pub(crate) fn table(&self, connection: usize) -> Option<&'s FlowTable> {
        let scenario: &'s Scenario = self.scenario;
        scenario.flow.get(self.connections.get(connection)?.table?)
    }

    /// A connection begins: with the connection manager, or at once.
    pub(crate) fn open(&mut self, connection: u32) {
        let place = connection as usize;
        match self.table(place) {
            Some(table) if table.cm && table.service != ServiceName::Ud => self.ask(connection),
            _ => {
                self.ends[place * 2 + 1].open = true;
                self.establish(connection);
            }
        }
    }

    /// The active side may send; so may the passive one when it has heard so.
    pub(crate) fn establish(&mut self, connection: u32) {
        let place = connection as usize;
        if self.connections[place].established {
            return;
        }
        self.connections[place].established = true;
        self.ends[place * 2].open = true;
        for source in self.connections[place].sources.clone() {
            self.events.at(self.now, Event::Post { source });
        }
        if let Some(table) = self.table(place)
            && table.receives.is_some()
            && let Some(refill) = table.refill
        {
            let end = EndpointId(connection * 2 + 1);
            self.events
                .at(self.now.plus(refill.max(Picos(1))), Event::Refill { end });
        }
    }

    /// Destroys a connection with everything it has on its way, and opens its successor later.
    pub(crate) fn replace(&mut self, connection: u32) {
        let place = connection as usize;
        for end in [place * 2, place * 2 + 1] {
            let own = &mut self.ends[end];
            own.closed = true;
            own.busy_since = None;
            own.jobs.clear();
            own.requester.fail(Failure::Destroyed);
            self.note_activity(EndpointId(number(end)));
        }
    }
}
