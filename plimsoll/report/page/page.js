// The cursor of the picture: pointer and keys choose an instant of the curve, whose operation, phase and
// bytes by tag are told. Bytes come as text, since they may not fit a number here.
(() => {
  'use strict';
  const figure = document.getElementById('chart');
  const plot = document.getElementById('plot');
  const readout = document.getElementById('readout');
  const cursor = plot.querySelector('.cursor');
  const curve = JSON.parse(document.getElementById('curve').textContent);
  const last = curve.event.length - 1;
  const width = plot.querySelector('svg').viewBox.baseVal.width;
  let at = curve.peak;

  const grouped = text => String(text).replace(/\B(?=(\d{3})+$)/g, ',');

  function human(text) {
    const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    let value = Number(text);
    if (value < 1024) return value + ' B';
    let name = 0;
    while (value >= 1024 && name + 1 < names.length) {
      value /= 1024;
      ++name;
    }
    return value.toFixed(2) + ' ' + names[name];
  }

  function show(index) {
    at = Math.max(0, Math.min(last, index));
    const event = curve.event[at];
    const operation = curve.operations[curve.operation[at]];
    const place = [`event ${grouped(event)}`, curve.phases[curve.phase[at]]];
    if (operation) place.push(operation);
    const text = `${place.join(', ')}: ${grouped(curve.total[at])} bytes (${human(curve.total[at])})`;
    readout.textContent = text;
    plot.setAttribute('aria-valuenow', event);
    plot.setAttribute('aria-valuetext', text);
    for (const cell of figure.querySelectorAll('[data-tag]')) {
      cell.textContent = grouped(curve.bytes[cell.dataset.tag][at]);
    }
    const x = width * event / curve.events;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
  }

  // The last point whose event is not behind `event`.
  function pointAt(event) {
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (curve.event[middle] <= event) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  const firstOf = phase => curve.phase.indexOf(phase);

  function previousPhase() {
    const begin = firstOf(curve.phase[at]);
    return begin < at ? begin : firstOf(Math.max(0, curve.phase[at] - 1));
  }

  function nextPhase() {
    const next = firstOf(curve.phase[at] + 1);
    return next < 0 ? last : next;
  }

  const keys = {
    ArrowRight: () => at + 1,
    ArrowUp: () => at + 1,
    ArrowLeft: () => at - 1,
    ArrowDown: () => at - 1,
    PageDown: nextPhase,
    PageUp: previousPhase,
    Home: () => 0,
    End: () => last,
    p: () => curve.peak,
    P: () => curve.peak,
  };

  plot.addEventListener('keydown', event => {
    const target = keys[event.key];
    if (!target || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    show(target());
  });

  function follow(event) {
    const box = plot.getBoundingClientRect();
    show(pointAt((event.clientX - box.left) / box.width * curve.events));
  }
  plot.addEventListener('pointermove', follow);
  plot.addEventListener('pointerdown', follow);

  figure.classList.add('live');
  show(at);
})();
