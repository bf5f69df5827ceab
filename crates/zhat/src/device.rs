//! Where tensors are computed, by the names that users write: `cpu`, or `vulkan:1` for the second Vulkan device.

use std::fmt;
use std::str::FromStr;

use burn::tensor::{BoolDType, Device};

use crate::error::{Error, Result};

/// What a device is reached through. All but the CPU are features of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Interface {
    /// The engine of this crate, which needs no feature.
    #[default]
    Cpu,
    /// Vulkan, through wgpu: AMD, Intel and NVIDIA, and Mesa's software device.
    Vulkan,
    /// Whatever wgpu finds: Vulkan, Metal, DirectX 12 or OpenGL.
    Wgpu,
    /// Apple's.
    Metal,
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Rocm,
}

crate::named!(Interface, "device", {
    Cpu: "cpu",
    Vulkan: "vulkan",
    Wgpu: "wgpu",
    Metal: "metal",
    Cuda: "cuda",
    Rocm: "rocm",
});

impl Interface {
    /// Whether it is compiled in.
    pub fn is_built(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Vulkan => cfg!(feature = "vulkan"),
            // The two others are wgpu with its interface chosen.
            Self::Wgpu => cfg!(any(feature = "wgpu", feature = "vulkan", feature = "metal")),
            Self::Metal => cfg!(feature = "metal"),
            Self::Cuda => cfg!(feature = "cuda"),
            Self::Rocm => cfg!(feature = "rocm"),
        }
    }

    /// The devices that it finds on this machine, in the order of their numbers; none where it is not compiled in.
    pub fn devices(self) -> Vec<Device> {
        #[cfg(feature = "vulkan")]
        if self == Self::Vulkan {
            return Device::enumerate(burn::tensor::DeviceType::Vulkan).into_iter().collect();
        }
        #[cfg(any(feature = "wgpu", feature = "vulkan", feature = "metal"))]
        if self == Self::Wgpu {
            return Device::enumerate(burn::tensor::DeviceType::Wgpu).into_iter().collect();
        }
        #[cfg(feature = "metal")]
        if self == Self::Metal {
            return Device::enumerate(burn::tensor::DeviceType::Metal).into_iter().collect();
        }
        #[cfg(feature = "cuda")]
        if self == Self::Cuda {
            return Device::enumerate(burn::tensor::DeviceType::Cuda).into_iter().collect();
        }
        #[cfg(feature = "rocm")]
        if self == Self::Rocm {
            return Device::enumerate(burn::tensor::DeviceType::Rocm).into_iter().collect();
        }
        match self {
            Self::Cpu => vec![Device::flex()],
            _ => Vec::new(),
        }
    }
}

/// One device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DeviceName {
    /// What it is reached through.
    pub interface: Interface,
    /// Which of those that are found there, from 0.
    pub index: usize,
}

impl DeviceName {
    /// The device itself, without autodiff; nothing for the CPU, whose engine needs none.
    pub fn open(self) -> Result<Option<Device>> {
        if self.interface == Interface::Cpu {
            return Ok(None);
        }
        let name = self.interface.name();
        if !self.interface.is_built() {
            let expected = format!(
                "cpu: this build has no {name}. Build it in with `cargo install --path crates/zhat-cli --features {name}`"
            );
            return Err(Error::setting("device", self, expected));
        }
        let devices = self.interface.devices();
        let number = devices.len();
        let Some(mut device) = devices.into_iter().nth(self.index) else {
            let expected = match number {
                0 => format!("cpu: {name} finds no device on this machine"),
                1 => format!("{name}: it finds one device on this machine"),
                _ => {
                    format!("{name}:0 to {name}:{}, the devices of this machine", number - 1)
                }
            };
            return Err(Error::setting("device", self, expected));
        };
        // Mesa's software device crashes on what is true or false in a byte, and others store it no faster. It can be said once for
        // each device: whoever opens it again finds it said.
        let _ = device.configure(BoolDType::U32);
        if crashes(&describe(self.interface, &device), cfg!(feature = "vulkan")) {
            let expected = "another device: Mesa's software device crashes on the SPIR-V that a build with vulkan gives it. It works \
                            as wgpu in a build with `--features wgpu` and without vulkan";
            return Err(Error::setting("device", self, expected));
        }
        Ok(Some(device))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => formatter.pad(self.interface.name()),
            index => formatter.pad(&format!("{}:{index}", self.interface)),
        }
    }
}

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (interface, index) = text.split_once(':').unwrap_or((text, "0"));
        let wrong = |_| Error::setting("device", text, "a name with a number, such as vulkan:1");
        let name = Self { interface: interface.parse()?, index: index.parse().map_err(wrong)? };
        match name {
            Self { interface: Interface::Cpu, index: 1.. } => {
                Err(Error::setting("device", text, "cpu: there is one, with all its cores"))
            }
            name => Ok(name),
        }
    }
}

/// A device that this build finds on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it is called here.
    pub name: DeviceName,
    /// What it calls itself.
    pub describes_itself: String,
}

/// All devices that this build finds on this machine; the CPU is the first.
pub fn found() -> Vec<Found> {
    let of = |interface: &Interface| {
        let devices = interface.devices().into_iter().enumerate();
        let interface = *interface;
        devices.map(move |(index, device)| Found {
            name: DeviceName { interface, index },
            describes_itself: describe(interface, &device),
        })
    };
    Interface::ALL.iter().flat_map(of).collect()
}

fn describe(interface: Interface, device: &Device) -> String {
    if interface == Interface::Cpu {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        return format!("the engine of zhat, {cores} threads");
    }
    #[cfg(any(
        feature = "vulkan",
        feature = "wgpu",
        feature = "metal",
        feature = "cuda",
        feature = "rocm"
    ))]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    format!("{device:?}")
}

/// Whether a device of this name ends the program in the middle of its work, rather than with an error: Mesa 22.3 and 25.0 do where
/// kernels are SPIR-V.
fn crashes(name: &str, is_spirv: bool) -> bool {
    is_spirv && name.contains("llvmpipe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mesas_software_device_is_refused_where_it_would_crash_and_others_are_not() {
        assert!(crashes("llvmpipe (LLVM 15.0.6, 256 bits)", true));
        assert!(!crashes("llvmpipe (LLVM 15.0.6, 256 bits)", false));
        assert!(!crashes("NVIDIA H100 PCIe", true));
    }

    #[test]
    fn names_are_read_and_written() {
        for text in ["cpu", "vulkan", "wgpu:2", "cuda:11"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        assert_eq!("vulkan:0".parse::<DeviceName>().unwrap().to_string(), "vulkan");
        for (text, says) in
            [("gpu", "one of cpu, vulkan"), ("cuda:x", "vulkan:1"), ("cpu:1", "cores")]
        {
            let error = text.parse::<DeviceName>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_cpu_is_always_there_and_what_is_not_built_in_names_its_feature() {
        assert_eq!(found()[0].name, DeviceName::default());
        assert!(DeviceName::default().open().unwrap().is_none());
        for &interface in &Interface::ALL[1..] {
            let name = DeviceName { interface, index: 99 };
            let error = name.open().unwrap_err().to_string();
            let expected = match interface.is_built() {
                true => "machine".to_owned(),
                false => format!("--features {interface}"),
            };
            assert!(error.contains(&expected), "{error}");
        }
    }
}
