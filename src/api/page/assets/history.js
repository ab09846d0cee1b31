// The last minute, second by second, as the charts want it.

export const SECONDS = 60;

export class History {
  #seconds = new Map();
  #queued = new Map();
  #last = 0;

  /** Takes in an event's seconds, and the queues at this moment. */
  add({ lanes, seconds }) {
    for (const second of seconds) {
      this.#seconds.set(second.second, second);
      this.#last = Math.max(this.#last, second.second);
    }
    // Set back by more than what is shown: the clock was.
    const newest = seconds.at(-1)?.second ?? this.#last;
    if (newest < this.#last - SECONDS) this.#restart(newest);
    const queued = lanes.lanes.map((lane) => ({ mine: lane.queued, all: lane.queued_all_accounts }));
    if (this.#last > 0) this.#queued.set(this.#last, queued);
    for (const map of [this.#seconds, this.#queued]) {
      for (const at of map.keys()) if (at <= this.#last - SECONDS) map.delete(at);
    }
  }

  #restart(newest) {
    for (const map of [this.#seconds, this.#queued]) {
      for (const at of map.keys()) if (at > newest) map.delete(at);
    }
    this.#last = newest;
  }

  /** The instants of the minute, as Unix seconds; the newest last. */
  times() {
    return Array.from({ length: SECONDS }, (_, place) => this.#last - SECONDS + 1 + place);
  }

  /** One value per second; null where nothing is known. */
  column(value) {
    return this.times().map((at) => {
      const second = this.#seconds.get(at);
      return second === undefined ? null : value(second);
    });
  }

  /** Queued messages of a lane, by its place: the account's own, or those of all accounts. */
  queued(place, whose) {
    return this.times().map((at) => this.#queued.get(at)?.[place]?.[whose] ?? null);
  }

  /** The seconds that are known, the newest first. */
  rows() {
    return [...this.#seconds.values()].sort((a, b) => b.second - a.second);
  }

  get last() {
    return this.#last;
  }
}
