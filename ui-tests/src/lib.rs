//! Programs that rustc must refuse, and the messages it must give: see `fail/` and `pass/`.
