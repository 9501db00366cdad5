package model

// KindCount counts the jobs of a kind, and those of them that were queued.
type KindCount struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Queued int    `json:"queued"`
}

// KindCounts returns the counts of all kinds that had jobs.
func (w *World) KindCounts() []KindCount {
	var counts []KindCount
	for _, row := range rows {
		count := KindCount{Kind: row.kind}
		if row.version != anyVersion && row.group != "batch" {
			count.Kind += "." + row.version
		}
		for _, j := range w.Jobs {
			if j.row == row {
				count.Count++
				if j.WasUnit {
					count.Queued++
				}
			}
		}
		if count.Count > 0 {
			counts = append(counts, count)
		}
	}
	return counts
}
