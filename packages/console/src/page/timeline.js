import { h, setText } from './dom.js';
import { counted, duration } from './formats.js';

/** How often the end of the line moves while a request runs. */
const redrawMs = 200;

/**
 * Creates the timeline of the stream of an answer: when it was connected, each event, the cut, and the resume. It shows
 * that no event is lost or repeated.
 */
export function createTimeline() {
  const track = h('div.timeline-track', { role: 'img' });
  const axis = h('div.timeline-axis.muted', { 'aria-hidden': 'true' });
  const legend = h('div.timeline-legend.muted', { 'aria-hidden': 'true' });
  const caption = h('figcaption.muted');
  const element = h('figure.timeline', { hidden: true }, track, axis, legend, caption);
  let run = { startedAt: 0, endedAt: undefined, spans: [], events: [] };
  let timer;
  const now = () => run.endedAt ?? performance.now();
  const draw = () => {
    const length = Math.max(1, now() - run.startedAt);
    const percent = (at) => `${((at - run.startedAt) / length) * 100}%`;
    const parts = run.spans.map(({ kind, from, to = now() }) => {
      const span = h(`span.span.${kind}`, { title: `${spanTexts[kind]} for ${duration(Math.round(to - from))}` });
      span.style.left = percent(from);
      span.style.width = `${((to - from) / length) * 100}%`;
      return span;
    });
    for (const { at, id, isAfterResume } of run.events) {
      const dot = h('span', { class: isAfterResume ? 'event resumed' : 'event', title: id ?? 'event' });
      dot.style.left = percent(at);
      parts.push(dot);
    }
    track.replaceChildren(...parts);
    axis.replaceChildren(...axisShares.map((share) => h('span', {}, duration(Math.round(length * share)))));
    const kinds = Object.keys(spanTexts).filter((kind) => run.spans.some((span) => span.kind === kind));
    legend.replaceChildren(
      ...kinds.map((kind) => h('span', {}, h(`span.span.${kind}`), spanTexts[kind])),
      ...(run.events.length > 0 ? [h('span', {}, h('span.event'), 'Event')] : []),
    );
    const text = describe(run, length);
    setText(caption, text);
    track.setAttribute('aria-label', `Timeline of the stream. ${text}`);
  };
  const changeTo = (kind) => {
    const at = performance.now();
    const last = run.spans.at(-1);
    if (last?.kind === kind) return;
    if (last !== undefined) last.to = at;
    run.spans.push({ kind, from: at });
  };
  return {
    element,
    /** Begins with a new request. */
    begin() {
      run = { startedAt: performance.now(), endedAt: undefined, spans: [], events: [] };
      element.hidden = true;
      clearInterval(timer);
      timer = setInterval(draw, redrawMs);
    },
    /** Adds an entry of the client, if it belongs to the stream of the answer. */
    add({ kind, request, eventId }) {
      if (run.endedAt !== undefined) return;
      if (kind === 'cut' && run.spans.length > 0) changeTo('cut');
      if (request === undefined) return;
      if (kind === 'waiting') changeTo('cut');
      if (kind === 'resuming') changeTo('resuming');
      if (kind === 'primed' || kind === 'message') {
        const isAfterResume = run.spans.some((span) => span.kind === 'resuming');
        changeTo(isAfterResume ? 'resumed' : 'open');
        // The first event of a connection has no message: it only repeats the position.
        if (kind === 'message') run.events.push({ at: performance.now(), id: eventId, isAfterResume });
      }
      element.hidden = false;
      draw();
    },
    /** Ends with the answer, or without one. */
    end() {
      clearInterval(timer);
      run.endedAt = performance.now();
      const last = run.spans.at(-1);
      if (last !== undefined) last.to = run.endedAt;
      draw();
    },
  };
}

/** The places of the times below the line. */
const axisShares = [0, 0.25, 0.5, 0.75, 1];

const spanTexts = { open: 'Connected', cut: 'Not connected', resuming: 'Resuming', resumed: 'Connected again' };

/** Describes the run: `8 events in 4.2 s, none repeated: 3 before the cut, 5 after the resume.` */
function describe({ spans, events }, length) {
  const ids = events.map(({ id }) => id).filter((id) => id !== undefined);
  const repeated = ids.length - new Set(ids).size;
  const after = events.filter(({ isAfterResume }) => isAfterResume).length;
  const all = `${counted(events.length, 'event')} in ${duration(Math.round(length))}`;
  if (!spans.some(({ kind }) => kind === 'cut')) return `${all}.`;
  const parts = `${events.length - after} before the cut, ${after} after the resume`;
  return `${all}, ${repeated === 0 ? 'none' : repeated} repeated: ${parts}.`;
}
