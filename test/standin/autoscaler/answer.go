package autoscaler

// goal is the state that an Answer drives requests to.
type goal int

const (
	ignored goal = iota
	waiting
	failed
	provisioned
	expired
	revoked
)

// Answer is the state that the stand-in drives a request to. The zero Answer is Never. If the answer changes while
// nodes are added, the nodes remain until the request is deleted, failed or revoked.
type Answer struct {
	goal            goal
	reason, message string
	pool            *Pool
	podsOnNode      int
}

// Never ignores the request, like an autoscaler that does not know its class.
func Never() Answer { return Answer{} }

// NotProvisioned reports Provisioned=False: the request waits for capacity.
func NotProvisioned(message string) Answer {
	return Answer{goal: waiting, reason: ReasonNotProvisioned, message: message}
}

// QuotaExceeded reports Provisioned=False: the request waits for the quota of a cloud provider.
func QuotaExceeded(message string) Answer {
	return Answer{goal: waiting, reason: ReasonQuotaExceeded, message: message}
}

// Fail reports Failed=True, unless the request has been provisioned.
func Fail(reason, message string) Answer {
	return Answer{goal: failed, reason: reason, message: message}
}

// Provision adds nodes and then reports Provisioned=True.
func Provision() Answer { return Answer{goal: provisioned, podsOnNode: 1} }

// Expire provisions the request if needed, and then reports BookingExpired=True. The nodes remain.
func Expire() Answer { return Answer{goal: expired, podsOnNode: 1} }

// Revoke provisions the request if needed, reports CapacityRevoked=True and removes its nodes with
// the pods on them.
func Revoke(message string) Answer {
	return Answer{goal: revoked, message: message, podsOnNode: 1}
}

// Within limits the capacity for an Answer that provisions.
func (a Answer) Within(pool *Pool) Answer {
	a.pool = pool
	return a
}

// PodsOnNode sets how many pods each added node has room for. The default is 1.
func (a Answer) PodsOnNode(n int) Answer {
	a.podsOnNode = max(n, 1)
	return a
}
