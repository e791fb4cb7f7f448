//! What tests of the dispatcher have in common.

use airtcp_core::Flow;
use airtcp_edge::MechanismNote;
use airtcp_gateway::dispatch::Keeper;
use airtcp_gateway::ledger::WriteError;
use airtcp_gateway::packets::SharedBytes;

/// A ledger that forgets: the process never ends.
pub(crate) struct Forgetful;

impl Keeper for Forgetful {
    fn write(&mut self, _: &str, _: &[MechanismNote<SharedBytes>]) -> Result<(), WriteError> {
        Ok(())
    }

    fn settle(&mut self) -> Vec<Flow> {
        Vec::new()
    }
}
