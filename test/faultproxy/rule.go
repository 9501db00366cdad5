package faultproxy

import "slices"

// Rule applies a fault to requests.
type Rule struct {
	Match Match
	Fault Fault
	// When returns whether the fault applies to the n-th matching request, counted from 1. Nil
	// means always.
	When func(n int) bool
}

// First is a value for Rule.When: the first requests, for example First(1) for one.
func First(most int) func(int) bool { return func(n int) bool { return n <= most } }

// Every is a value for Rule.When: each step-th request.
func Every(step int) func(int) bool { return func(n int) bool { return n%step == 0 } }

type rule struct {
	Rule
	met, struck int
}

// Set adds a rule after the existing rules. If several rules match a request, the first whose fault
// applies counts.
func (p *Proxy) Set(r Rule) *InForce {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := &rule{Rule: r}
	p.rules = append(p.rules, set)
	return &InForce{p, set}
}

// InForce is a rule in force.
type InForce struct {
	proxy *Proxy
	rule  *rule
}

// End removes the rule.
func (f *InForce) End() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.proxy.rules = slices.DeleteFunc(f.proxy.rules, func(r *rule) bool { return r == f.rule })
}

// Count returns to how many requests the fault was applied.
func (f *InForce) Count() int {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.rule.struck
}

func (p *Proxy) faultFor(request Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if !r.Match.meets(request) {
			continue
		}
		if r.met++; r.When == nil || r.When(r.met) {
			r.struck++
			return r.Fault
		}
	}
	return nil
}
