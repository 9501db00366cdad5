// Package program is what the long-running programs of kube-queue have in
// common: settings, logs, the connection to the API server, health, signals and
// leader election. A program's folder in cmd holds its own options and a Run
// function; everything else is here, how settings are read in package settings.
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
// otherwise; the lease is released only after the work that it guards has
// stopped; a program that loses its lease, or was frozen for longer than it holds,
// is gone at once, and none of its writes reaches the API server later than a new
// leader may start.
package program
