"""Jacobians and Hessians with respect to several arrays, which JAX computes in double precision, as JSON: `python blocks.py > blocks.json`."""

import json

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp


def array(k, *shape):
    """The same as in `blocks.rs`."""
    count = 1
    for size in shape:
        count *= size
    return jnp.sin(1.3 * jnp.arange(count) + 0.7 * k).reshape(shape)


def layer(w, b):
    return jnp.tanh(jnp.einsum("ni,io->no", array(0, 4, 3), w) + b)


def loss(w, b):
    return (layer(w, b) * array(1, 4, 2)).sum()


w, b = array(2, 3, 2), array(3, 2)
blocks = {
    "jacobian": jax.jacobian(layer, (0, 1))(w, b),
    "hessian": [block for row in jax.hessian(loss, (0, 1))(w, b) for block in row],
}
print(json.dumps({name: [block.flatten().tolist() for block in all] for name, all in blocks.items()}, indent=1))
