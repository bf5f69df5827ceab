//! The bases of all members of many rows as tensors: their mean is what is drawn from and weighed, and each is trained by itself.

use burn::tensor::Tensor;

use super::base::Base;
use crate::ar::model::mean_of_members;

/// What every member says about the next feature of every row, each in the same share.
pub struct Bases(Vec<Base>);

impl Bases {
    /// Of one member or more.
    pub fn new(members: impl IntoIterator<Item = Base>) -> Self {
        Self(members.into_iter().collect())
    }

    /// The same away from any graph.
    pub fn inner(self) -> Self {
        Self::new(self.0.into_iter().map(Base::inner))
    }

    /// `log q_m(x)` of every member, each `[rows, values]`; atoms do not count.
    ///
    /// # Shapes
    /// - `x`: `[rows, values]`
    pub fn log_densities(&self, x: &Tensor<2>) -> Vec<Tensor<2>> {
        self.0.iter().map(|base| base.log_density(x.clone())).collect()
    }

    /// `log q(x)` of the mean.
    pub fn log_density(&self, x: &Tensor<2>) -> Tensor<2> {
        mean_of(self.log_densities(x))
    }

    /// Draws: a member by a uniform, then with what is left of it a draw of its base.
    ///
    /// # Shapes
    /// - `uniforms`, `normals`, output: `[rows, draws]`
    pub fn draw(&self, uniforms: &Tensor<2>, normals: &Tensor<2>) -> Tensor<2> {
        let [first, others @ ..] = &self.0[..] else { unreachable!("a member") };
        if others.is_empty() {
            return first.draw(uniforms, normals);
        }
        let scaled = uniforms.clone() * self.0.len() as f64;
        let member = scaled.clone().floor().clamp_max(others.len() as f64);
        let rest = scaled - member.clone();
        let mut drawn = first.draw(&rest, normals);
        for (index, base) in others.iter().enumerate() {
            let is_its = member.clone().equal_elem((index + 1) as f32);
            drawn = drawn.mask_where(is_its, base.draw(&rest, normals));
        }
        drawn
    }
}

/// The log of the mean over members, column by column.
pub fn mean_of(mut members: Vec<Tensor<2>>) -> Tensor<2> {
    if members.len() == 1 {
        return members.swap_remove(0);
    }
    let ([rows, columns], number) = (members[0].dims(), members.len());
    let all = Tensor::stack::<3>(members, 2).reshape([rows * columns, number]);
    mean_of_members(all).reshape([rows, columns])
}
