package arrival

import "time"

// Submitted returns the time that orders units with the same priority. submitted is the submissionTime of the unit;
// zero if it has none. Only job-extensions can set a time before the creation of a unit: anyone could write one into
// a hand-made unit.
func Submitted(byHand bool, submitted, created time.Time) time.Time {
	if submitted.IsZero() || byHand && submitted.Before(created) {
		return created
	}
	return submitted
}
