// Package program contains what the long-running programs of kube-queue share. The folder
// of a program in cmd contains its own options and a Run function. Each package below this
// one has one task: settings reads the settings, logs configures logging, identity provides
// the version and the identity of the process, serving serves health checks, metrics and
// profiles, lease elects the leader, and unitcrd checks the CRD of QueueUnits. This package
// combines them and connects to the API server.
//
//	func main() {
//		program.Main(program.Program{Name: "job-extensions", Settings: ..., Environ: os.Environ(), Run: run})
//	}
//
//	func run(ctx context.Context, env *program.Env) error {
//		... start informers, wait for them ...
//		env.MarkReady()
//		return env.Lead(ctx, func(ctx context.Context) error { ... work until ctx is done ... })
//	}
//
// Invariants: a program exits with status 0 after a graceful shutdown (SIGINT, SIGTERM),
// with 2 if its settings are invalid, and with 1 otherwise. Package lease documents the
// invariants of the lease.
package program
