package codec

import "testing"

func TestKindsHaveNumbers(t *testing.T) {
	var k Kinds
	job, tfJob := k.of("Job"), k.of("TFJob")
	if job == 0 || job == tfJob || k.of("Job") != job || k.of("") != 0 {
		t.Errorf("Job is %d, TFJob %d", job, tfJob)
	}
	if list := k.Names(); list[job] != "Job" || list[tfJob] != "TFJob" {
		t.Errorf("the kinds are %q", list)
	}
}
