//! Where networks run, for the commands that run any.

use zhat::device::DeviceName;
use zhat::ranks::Workers;

use crate::ranks;

/// The device, and the threads beside it.
#[derive(clap::Args)]
pub struct DeviceOptions {
    /// Where the networks run: cpu, vulkan, wgpu, metal, cuda or rocm, with a number where there are several, as vulkan:1; `zhat devices`
    /// lists those of this machine
    #[arg(long, default_value_t = DeviceName::default())]
    device: DeviceName,
    /// Threads; 0 for as many as there are cores
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

impl DeviceOptions {
    /// Who does the work, together with all other ranks.
    pub fn workers(&self) -> anyhow::Result<Workers> {
        Ok(ranks::workers(self.threads)?.on(self.device.open()?)?)
    }

    /// The same for this process alone.
    pub fn alone(&self) -> anyhow::Result<Workers> {
        Ok(Workers::from(self.threads).on(self.device.open()?)?)
    }
}
