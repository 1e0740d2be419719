// Times from an input to its painting, measured by the page itself: window.explorerTimings, newest last.
// `echo` ends when the typed text is on the screen, `colour` when its tokens are.

const MOST = 500;
window.explorerTimings = [];

export function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => resolve(performance.now());
      channel.port2.postMessage(0);
    });
  });
}

export function begin(kind, event) {
  const entry = { kind, at: event ? event.timeStamp : performance.now(), echo: null, colour: null };
  window.explorerTimings.push(entry);
  if (window.explorerTimings.length > MOST) window.explorerTimings.shift();
  painted().then((now) => {
    entry.echo = now - entry.at;
  });
  return entry;
}

export function coloured(entry) {
  if (!entry || entry.colour !== null) return;
  entry.colour = -1;
  painted().then((now) => {
    entry.colour = now - entry.at;
  });
}
