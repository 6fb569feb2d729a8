use super::Pipeline;
use super::lane::{At, write};
use crate::clock::wall_ns;
use crate::encode;
use crate::record::Foreign;

impl Pipeline {
    /// Shows recorded events to every task, each once, whatever the task's cadence.
    pub fn take_recorded(&mut self, events: &[Foreign]) {
        self.recorded = true;
        for lines in &mut self.lines {
            lines.clear();
        }
        let now_ns = wall_ns();
        self.leave_out_ended(now_ns);
        for group in &mut self.groups {
            group.shown += events.len() as u64;
        }
        let overflow = self.overflow;
        let Self { lanes, lines, touched, .. } = self;
        for (record, event) in events.iter().enumerate() {
            let time_ns = event.time_ns().unwrap_or(now_ns);
            for (place, lane) in lanes.iter_mut().enumerate() {
                if lane.is_left_out || !lane.planned.filter.takes(event) {
                    continue;
                }
                let Some(lines) = lines.get_mut(lane.lines) else { continue };
                let mask = lane.planned.mask;
                let format = if event.flow().is_some() { lane.line_format() } else { lane.format() };
                let encode = |text: &mut _| encode::event(format, event, &mask, text);
                // What is no flow is written at once, as Hubble does.
                let aggregator = lane.kept.aggregator.as_mut();
                if let Some(aggregator) = aggregator {
                    write(aggregator.due(time_ns, lane.running.counters()), &lane.running, overflow);
                }
                let aggregator = lane.kept.aggregator.as_mut().filter(|_| event.flow().is_some());
                if let Some(aggregator) = aggregator {
                    let line = lines.line(record, encode);
                    aggregator.add(lines.text(line), event, (time_ns, time_ns), lane.running.counters());
                    lane.add();
                } else if lane.admits(time_ns) {
                    lane.take(lines.line(record, encode), At { time_ns, from_ns: time_ns });
                }
                if lane.touch() {
                    touched.push(place);
                }
            }
        }
        self.hand_on();
    }
}
