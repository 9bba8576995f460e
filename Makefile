fmt:
	cargo fmt --all
