package harness

import "testing"

// AnswersReviews makes a controller that is not started yet answer reviews, at the address that it returns.
func (s *Suite) AnswersReviews(t testing.TB, controller *Program) (address string) {
	t.Helper()
	address, args, err := s.RouteReviews(t.Context())
	Must(t, err)
	controller.Args = append(controller.Args, args...)
	return address
}
