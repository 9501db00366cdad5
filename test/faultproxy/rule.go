package faultproxy

import "slices"

// Rule says which requests a fault befalls.
type Rule struct {
	Match Match
	Fault Fault
	// When decides, for the n-th request that the rule meets, counted from 1, whether the
	// fault befalls it; nil: always.
	When func(n int) bool
}

// First is for Rule.When: the first so many, as First(1) for once.
func First(most int) func(int) bool { return func(n int) bool { return n <= most } }

// Every is for Rule.When: every so many.
func Every(step int) func(int) bool { return func(n int) bool { return n%step == 0 } }

type rule struct {
	Rule
	met, struck int
}

// Set puts a rule in force, after those that are, until its end. Of several rules that
// meet a request the first whose fault befalls it counts.
func (p *Proxy) Set(r Rule) *InForce {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := &rule{Rule: r}
	p.rules = append(p.rules, set)
	return &InForce{p, set}
}

// InForce is a rule that was set.
type InForce struct {
	proxy *Proxy
	rule  *rule
}

// End has the rule meet nothing more.
func (f *InForce) End() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.proxy.rules = slices.DeleteFunc(f.proxy.rules, func(r *rule) bool { return r == f.rule })
}

// Count reports how many requests the fault has befallen.
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
