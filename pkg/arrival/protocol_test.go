package arrival

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// birth is the creation of one unit.
type birth struct {
	// sequence is the namespace and kind within which the order is preserved.
	sequence, name, after string
	// begins, lands and ends are when the request is sent, when the API server stores the unit, and when the response
	// arrives. arrives is when the receiver sees the unit.
	begins, lands, ends, arrives time.Duration
	fails                        bool
	// alone is whether no other creation of the sequence was in progress.
	alone bool
}

func (b *birth) key() string { return b.sequence + "/" + b.name }

// drawBirths returns a schedule of creations in the order in which they begin.
func drawBirths(t *rapid.T) []*birth {
	ms := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Millisecond
	}
	mayFail, maySlow := rapid.Bool().Draw(t, "may fail"), rapid.Bool().Draw(t, "may be slow")
	var all []*birth
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 25).Draw(t, "units") {
		at += ms("pause", 30)
		b := &birth{sequence: rapid.SampledFrom([]string{"a/Job", "a/TFJob", "b/Job"}).Draw(t, "sequence"), name: fmt.Sprintf("%02d", i), begins: at}
		most := 150
		if maySlow && rapid.IntRange(0, 5).Draw(t, "slow") == 0 {
			most = 3000
		}
		b.lands = b.begins + ms("until it is stored", most)
		b.ends = b.lands + ms("until the answer", most)
		b.fails = mayFail && rapid.IntRange(0, 5).Draw(t, "fails") == 0
		all = append(all, b)
	}
	return all
}

// send runs the schedule with one Sender per kind, which sets after. It returns the units in the order in which the API
// server stored them.
func send(births []*birth) (stored []*birth) {
	type event struct {
		at time.Duration
		do func()
	}
	senders := map[string]*Sender{"Job": NewSender(), "TFJob": NewSender()}
	under := map[string]int{}
	var events []event
	for _, b := range births {
		namespace, kind := b.sequence[:1], b.sequence[2:]
		var turn *Turn
		events = append(events,
			event{b.begins, func() {
				b.alone = under[b.sequence] == 0
				under[b.sequence]++
				turn = senders[kind].Enter()
				b.after = turn.Begin(namespace, b.name)
			}},
			event{b.lands, func() {
				if !b.fails {
					stored = append(stored, b)
				}
			}},
			event{b.ends, func() {
				under[b.sequence]--
				turn.End()
			}})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		e.do()
	}
	return stored
}

// exhibition is a Receiver, and when it first delivered each unit.
type exhibition struct {
	*Receiver[*birth]
	order []*birth
	at    map[*birth]time.Duration
	// unshown is how often each unit was seen but not delivered.
	unshown map[*birth]int
}

func newExhibition() *exhibition {
	e := &exhibition{at: map[*birth]time.Duration{}, unshown: map[*birth]int{}}
	e.Receiver = NewReceiver[*birth](func(key string) bool {
		return slices.ContainsFunc(e.order, func(b *birth) bool { return b.key() == key })
	})
	return e
}

func (e *exhibition) show(births []*birth, now time.Duration) {
	for _, b := range births {
		e.unshown[b]--
		if _, before := e.at[b]; !before {
			e.order = append(e.order, b)
			e.at[b] = now
		}
	}
}

var epoch = time.Unix(1000, 0)

func (e *exhibition) see(b *birth, now time.Duration) {
	u := Unit[*birth]{Key: b.key(), UID: b.key(), Fresh: true, Value: b}
	if name := After(Annotate(nil, b.after)); name != "" {
		u.After = b.sequence + "/" + name
	}
	e.unshown[b]++
	e.show(e.See(u, epoch.Add(now)), now)
}

// pass moves the clock to now.
func (e *exhibition) pass(now time.Duration) {
	for next := e.Next(); !next.IsZero() && next.Sub(epoch) < now; next = e.Next() {
		e.show(e.Due(next), next.Sub(epoch))
	}
}

// receive passes the units to the Receiver in the order in which they were stored, some of them twice.
func (e *exhibition) receive(t *rapid.T, stored []*birth) {
	now := time.Duration(0)
	for i, b := range stored {
		now = max(now, b.lands) + time.Duration(rapid.IntRange(0, 20).Draw(t, "until it is reported"))*time.Millisecond
		e.pass(now)
		b.arrives = now
		e.see(b, now)
		if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
			e.see(stored[rapid.IntRange(0, i).Draw(t, "of")], now)
		}
	}
	e.pass(now + time.Hour)
}

// Sender and Receiver together deliver the units of a sequence in the order in which their creation began, unless a
// creation failed or took longer than Patience. No unit is held for longer than Patience, and a unit that came alone is
// not held at all.
func TestPropertyBothHalvesKeepTheOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		births := drawBirths(t)
		stored := send(births)
		shown := newExhibition()
		shown.receive(t, stored)

		began, orderly := map[string][]string{}, map[string]bool{}
		for _, b := range births {
			if _, known := orderly[b.sequence]; !known {
				orderly[b.sequence] = true
			}
			if b.fails || b.arrives-b.begins > Patience {
				orderly[b.sequence] = false
			}
			if b.fails {
				continue
			}
			began[b.sequence] = append(began[b.sequence], b.name)
			at, was := shown.at[b]
			switch held := at - b.arrives; {
			case !was:
				t.Fatalf("%s is never shown", b.key())
			case shown.unshown[b] < 0:
				t.Fatalf("%s is shown more often than it was reported", b.key())
			case held > Patience:
				t.Fatalf("%s is held for %v", b.key(), held)
			case held > 0 && b.alone:
				t.Fatalf("%s came alone and is held for %v", b.key(), held)
			}
		}
		got := map[string][]string{}
		for _, b := range shown.order {
			got[b.sequence] = append(got[b.sequence], b.name)
		}
		for sequence, want := range began {
			if orderly[sequence] && !slices.Equal(got[sequence], want) {
				t.Fatalf("of %s are shown %v, not %v", sequence, got[sequence], want)
			}
		}
		if len(shown.held)+len(shown.waiting)+len(shown.behind) > 0 {
			t.Fatalf("left are %v %v %v", shown.held, shown.waiting, shown.behind)
		}
	})
}
