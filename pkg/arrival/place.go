package arrival

import "time"

// Submitted returns the time that orders units of one priority. Submitted is the submissionTime of the unit;
// zero if it has none. Only job-extensions knows an earlier time than the creation of a unit: anybody could
// write it into a unit that is created by hand.
func Submitted(byHand bool, submitted, created time.Time) time.Time {
	if submitted.IsZero() || byHand && submitted.Before(created) {
		return created
	}
	return submitted
}
