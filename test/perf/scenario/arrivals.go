package scenario

import (
	"cmp"
	"slices"
	"time"
)

// Arrival is one unit.
type Arrival struct {
	// At is after the start.
	At time.Duration
	// Leaf and Class are indexes, Number counts those of the class in the leaf, all
	// from 0.
	Leaf, Class, Number int32
}

// Stretch has everything take so many times as long: what arrives, what it runs, and the
// bar for the whole. An API server that takes half as many writes a second as the bars
// were made for can be measured with a factor of 2.
func (s *Scenario) Stretch(factor float64) {
	for i := range s.Classes {
		for _, d := range []*Duration{&s.Classes[i].RunTime, &s.Classes[i].Every} {
			d.Duration = time.Duration(float64(d.Duration) * factor)
		}
	}
	if wall := s.Bars.WallSeconds; wall != nil {
		s.Bars.WallSeconds = new(*wall * factor)
	}
}

// Units is how many arrive in all.
func (s *Scenario) Units() int {
	leaf := 0
	for _, class := range s.Classes {
		leaf += class.Count
	}
	return leaf * s.LeafCount()
}

// Arrivals are all, in the order of their times. Each class of each leaf has a clock of
// its own, and all begin at once.
func (s *Scenario) Arrivals() []Arrival {
	arrivals := make([]Arrival, 0, s.Units())
	for c, class := range s.Classes {
		for number := range class.Count {
			for leaf := range s.LeafCount() {
				arrivals = append(arrivals, Arrival{
					At: time.Duration(number) * class.Every.Duration, Leaf: int32(leaf), Class: int32(c), Number: int32(number),
				})
			}
		}
	}
	slices.SortStableFunc(arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return arrivals
}

// shape is by how much a unit's requests are multiplied.
func (c *Class) shape(number int) int { return number%c.Shapes + 1 }

// RequestsOf are those of the class's unit of that number.
func (c *Class) RequestsOf(number int) Amounts { return c.Requests.times(int64(c.shape(number))) }

// ShapeOf reports which of the class's shapes it has, from 0.
func (c *Class) ShapeOf(number int) int { return c.shape(number) - 1 }

// Work is the cpu seconds of all units together.
func (s *Scenario) Work() float64 {
	work := 0.0
	for _, class := range s.Classes {
		for number := range class.Count {
			work += class.Requests.cpu() * float64(class.shape(number)) * class.RunTime.Seconds()
		}
	}
	return work * float64(s.LeafCount())
}

// Capacity is the cpu of all parents together; 0 when they have no limit.
func (s *Scenario) Capacity() float64 { return s.Parents.Max.cpu() * float64(s.Parents.Count) }
