// Package program is what the long-running programs of kube-queue have in
// common. A program's folder in cmd holds its own options and a Run function. The
// packages below this one each do one thing: settings reads what was set, logs writes
// logs, identity says who the program is, serving answers for health and metrics,
// lease elects the leader, and unitcrd looks at the CRD of QueueUnits. This one puts them
// together, and connects to the API server.
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
// Invariants: a program ends with status 0 when it was asked to end (SIGINT,
// SIGTERM) and did so in order, 2 when its settings are wrong, and 1
// otherwise. Package lease says what holds of its lease.
package program
