package e2e

import (
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// These stories need the programs with their default settings, and nothing else of the cluster but a namespace
// and nodes of the quota tree. They mostly wait, so they run at the same time.
func TestStoriesOfOneClusterAndOneTree(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, enabled)
	l.Together(t, []harness.Part{
		{Name: "a manifest applied again changes nothing", Namespace: "gitops", Run: aManifestAppliedAgainChangesNothing},
		{Name: "a job unsuspended by hand while queued is suspended again", Namespace: "byhand", Run: aJobUnsuspendedByHandWhileQueuedIsSuspendedAgain},
		{Name: "a job suspended by hand after its release gives its quota back", Namespace: "byhand2", Run: aJobSuspendedByHandAfterItsReleaseGivesItsQuotaBack},
		{Name: "jobs of others are not touched", Namespace: "others", Run: jobsOfOthersAreNotTouched},
		{Name: "a job without quota shows the reason on unit and job", Namespace: "nowhere", Run: aJobWithoutQuotaShowsTheReasonOnUnitAndJob},
		{Name: "a job being deleted gets no quota", Namespace: "deleted", Run: aJobBeingDeletedGetsNoQuota},
		{Name: "an invalid job shows its queue and phase", Namespace: "wrong", Run: anInvalidJobShowsItsQueueAndPhase},
		{Name: "memory limits of 2 GiB and more are enforced", Namespace: "memory", Run: memoryLimitsOf2GiBAndMoreAreEnforced},
		{Name: "a nine-level tree limits at each level", Namespace: "deep", Run: aNineLevelTreeLimitsAtEachLevel},
		{Name: "a failed job gives its quota back", Namespace: "failing", Run: aFailedJobGivesItsQuotaBack},
		{Name: "a deleted job gives its quota back", Namespace: "deleting", Run: aDeletedJobGivesItsQuotaBack},
		{Name: "a queue is stopped and continues", Namespace: "stopped", Run: aQueueIsStoppedAndContinues},
		{Name: "a quota gets back what it has lent", Namespace: "reclaimed", Run: aQuotaGetsBackWhatItHasLent},
		{Name: "a job that outgrows its quota reports it", Namespace: "outgrows", Run: aJobThatOutgrowsItsQuotaReportsIt},
		{Name: "a job starts with fewer pods and has all of them when it is stopped", Namespace: "fewer", Run: aJobStartsWithFewerPodsAndHasAllOfThemWhenItIsStopped},
		{Name: "a job that runs with fewer pods is preempted", Namespace: "fewer2", Run: aJobThatRunsWithFewerPodsIsPreempted},
		{Name: "a job whose pods are never ready makes room", Namespace: "unready", Run: aJobWhosePodsAreNeverReadyMakesRoom},
	})
}
