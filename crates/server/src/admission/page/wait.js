// Keeps the page true without reloading it. The server has rendered everything already; this asks at the pace it
// dictates, fills in what changed, and takes the shopper back to the shop with the pass.
(() => {
  "use strict";
  const SLOWEST = 30000;
  const IN_LINE = ["prequeue", "waiting", "held", "paused"];
  const OVER = ["done", "closed", "missed", "lapsed", "left", "lost"];
  const given = JSON.parse(document.getElementById("wr-data").textContent);
  const words = {};
  for (const word of document.getElementById("wr-words").content.querySelectorAll("[data-word]"))
    words[word.dataset.word] = word.textContent;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const put = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  let ticket = given.ticket;
  let scene = document.body.dataset.scene;
  let offset = given.now - Date.now();
  let timer, dueAt = 0, failures = 0, askedAt = Date.now(), spokenAhead = Infinity, spokenGone = false, busy = false;
  const now = () => Date.now() + offset;

  // Words of numbers and times.
  const locale = navigator.languages.find((l) => l.startsWith("en")) ?? "en-GB";
  const number = (n) => (n == null ? "–" : n.toLocaleString(locale));
  const days = (ms) => Math.floor(ms / 86400000);
  const moment = (ms, style) => {
    if (ms == null) return "–";
    const day = new Date(ms).toDateString() === new Date(now()).toDateString() ? {} : { day: "numeric", month: "long" };
    const parts = style === "updated" ? { timeStyle: "medium" }
      : { ...day, hour: "numeric", minute: "2-digit", timeZoneName: "short" };
    return new Intl.DateTimeFormat(locale, parts).format(ms);
  };
  const count = (ms) => {
    const s = Math.max(0, Math.ceil(ms / 1000)), two = (n) => String(n).padStart(2, "0");
    const h = Math.floor(s / 3600), m = Math.floor((s % 3600) / 60);
    if (h >= 24) return put(words.days, { d: days(s * 1000), h: h % 24 });
    return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
  };
  const range = (p50, p90) => {
    if (p90 < 60) return words.under_minute;
    if (p90 > 5400) {
      const a = Math.max(1, Math.round(p50 / 3600)), b = Math.max(a, Math.ceil(p90 / 3600));
      return a < b ? put(words.hour_range, { a, b }) : a === 1 ? words.one_hour : put(words.hours, { a });
    }
    const step = p90 > 1200 ? 5 : 1;
    const a = Math.max(1, Math.floor(p50 / 60 / step) * step), b = Math.max(a, Math.ceil(p90 / 60 / step) * step);
    return a < b ? put(words.minute_range, { a, b }) : a === 1 ? words.one_minute : put(words.minutes, { a });
  };

  // What is shown.
  const at = (name) => {
    const text = ticket?.[name] ?? given[name];
    return text == null ? null : Date.parse(text);
  };
  const sceneOf = () => {
    const { state, room } = ticket;
    if (state === "done" || state === "left") return state;
    if (room === "sold_out" || (state !== "admitted" && room === "closed")) return room;
    if (state === "expired") return ticket.claim_by ? "missed" : "lapsed";
    if (room === "paused" && (state === "prequeue" || state === "waiting")) return "paused";
    return room === "held" && state === "waiting" ? "held" : state;
  };
  const speak = (text) => { document.getElementById("wr-live").textContent = text; };
  const trouble = (text) => {
    const box = document.getElementById("wr-trouble");
    box.hidden = !text;
    if (box.textContent !== (text ?? "")) box.textContent = text ?? "";
  };
  const values = () => ({
    position: number(ticket?.position), total: number(ticket?.waiting_total), ticket: ticket?.ticket,
    ahead: ticket?.ahead === 0 ? words.nobody : number(ticket?.ahead), short: ticket?.ticket.slice(-8),
    eta: !ticket?.eta?.known ? words.unknown : ticket.ahead === 0 ? words.now : range(ticket.eta.p50_s, ticket.eta.p90_s),
    claim_left: range((at("claim_by") - now()) / 1000, (at("claim_by") - now()) / 1000),
  });
  const announce = (was, shown) => {
    const line = { ...shown, position: number(ticket?.position) };
    if (was !== scene) speak(put(document.querySelector(`section[data-scene="${scene}"]`).dataset.say ?? "", line));
    else if (scene === "waiting" && ticket.stock.likely_gone_before_turn && !spokenGone) speak(words.likely_gone);
    else if (scene === "waiting" && ticket.ahead <= spokenAhead / 2)
      speak(put(document.querySelector('section[data-scene="waiting"]').dataset.say, line));
    else return;
    spokenAhead = ticket?.ahead ?? Infinity;
    spokenGone = ticket?.stock.likely_gone_before_turn ?? false;
  };
  const show = (next) => {
    const was = scene, hadFocus = document.activeElement?.closest("section, footer");
    scene = next;
    document.body.dataset.scene = scene;
    for (const section of all("section[data-scene]")) section.hidden = section.dataset.scene !== scene;
    const held = ticket && (ticket.room === "held" || ticket.stock.state === "held");
    const holds = { ticket: !!ticket, in_line: IN_LINE.includes(scene), held, paused: ticket?.room === "paused",
      likely_gone: ticket?.stock.likely_gone_before_turn, session: at("expires_at") != null };
    for (const part of all("[data-if]")) if (part.dataset.if in holds) part.hidden = !holds[part.dataset.if];
    const shown = values();
    for (const slot of all("[data-slot]"))
      if (shown[slot.dataset.slot] != null && slot.textContent !== shown[slot.dataset.slot]) slot.textContent = shown[slot.dataset.slot];
    for (const time of all("[data-time]")) {
      const ms = time.dataset.time === "updated" ? askedAt + offset : at(time.dataset.time);
      if (ms != null) { time.dateTime = new Date(ms).toISOString(); time.textContent = moment(ms, time.dataset.time); }
    }
    const section = document.querySelector(`section[data-scene="${scene}"]`);
    const head = scene === "waiting" ? put(words.position, shown) : section.dataset.title;
    document.title = `${head} – ${given.title}`;
    for (const field of all('input[name="ticket"]')) field.value = ticket?.ticket ?? "";
    announce(was, shown);
    if (was !== scene && hadFocus?.closest("[hidden]")) section.querySelector("h1").focus();
    tick();
  };
  const tick = () => {
    for (const clock of all("[data-until]")) {
      const ms = at(clock.dataset.until);
      if (ms != null && clock.offsetParent) clock.textContent = count(ms - now());
    }
    if (scene === "early" && at("opens_at") <= now() && !busy) { busy = true; wait(Math.random() * 5000).then(join); }
  };

  // What is asked.
  const jitter = (ms) => ms * (1 + Math.random() * 0.2);
  const retryAfter = (answer) => 1000 * (Number(answer.headers.get("retry-after")) || 0);
  const plan = (ms) => {
    clearTimeout(timer);
    dueAt = Date.now() + ms;
    timer = setTimeout(poll, ms);
  };
  const pace = () => {
    if (OVER.includes(scene)) return clearTimeout(timer);
    let ms = Math.min(SLOWEST, Math.max(1000, ticket.poll_after_ms ?? 5000));
    if (scene === "sold_out") ms = SLOWEST;
    if (document.hidden) ms = Math.min(SLOWEST, ms * 3);
    const start = at("starts_at") - now();
    if (scene === "prequeue" && start > 0 && start + 4000 < ms) ms = start + Math.random() * 4000;
    plan(ms);
  };
  const take = (fresh) => {
    failures = 0;
    askedAt = Date.now();
    ticket = fresh;
    if (fresh.server_time) offset = Date.parse(fresh.server_time) - Date.now();
    trouble(null);
    show(sceneOf());
    pace();
  };
  const ask = (method, path, body) => fetch(given.queue + path, {
    method, body, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(15000),
    headers: body ? { "content-type": "application/json" } : {},
  });
  const later = (answer) => {
    failures += 1;
    if (failures > 1) trouble(words.unreachable);
    const back = Math.min(SLOWEST, 1000 * 2 ** failures) * (0.75 + Math.random() / 2);
    plan(answer ? Math.max(jitter(retryAfter(answer)), back) : back);
  };
  const poll = async () => {
    clearTimeout(timer);
    if (!ticket || busy) return;
    const asked = ticket.ticket;
    try {
      const answer = await ask("GET", "/" + encodeURIComponent(asked));
      const fresh = answer.ok ? await answer.json() : null;
      if (asked !== ticket?.ticket || busy) return;
      if (fresh) take(fresh);
      else if (answer.status === 404 || answer.status === 401) { ticket = null; show("lost"); }
      else if (answer.status === 410) show(scene === "turn" ? "missed" : "lapsed");
      else later(answer);
    } catch { if (asked === ticket?.ticket && !busy) later(null); }
  };
  const join = async () => {
    busy = true;
    for (;;) {
      let answer = null;
      try {
        answer = await ask("POST", "", "{}");
        if (answer.ok) { ticket = await answer.json(); break; }
      } catch { answer = null; }
      if (answer?.status === 410) { busy = false; return show("closed"); }
      failures += 1;
      trouble(answer ? words.busy : words.unreachable);
      await wait(Math.max(answer ? jitter(retryAfter(answer)) : 0, Math.min(SLOWEST, 1000 * 2 ** failures) * (0.75 + Math.random() / 2)));
    }
    busy = false;
    take(ticket);
    listen();
  };
  const claim = async () => {
    const answer = await ask("POST", "/" + encodeURIComponent(ticket.ticket) + "/claim");
    if (answer.status === 200) {
      const back = new URL(given.return_url, location.href);
      back.searchParams.set("waiting_room_pass", (await answer.json()).pass);
      location.assign(back);
      return;
    }
    trouble(answer.status === 202 ? words.not_yet : answer.status === 410 ? null : words.busy);
    await wait(answer.status === 410 ? 0 : Math.max(1000, retryAfter(answer)));
  };
  const leave = async () => {
    const answer = await ask("DELETE", "/" + encodeURIComponent(ticket.ticket));
    if (!answer.ok && answer.status !== 404) return trouble(words.busy);
    ticket = null;
    show("left");
  };

  // One answer for one press: a second press while it is on its way does nothing.
  document.addEventListener("submit", async (event) => {
    const action = { join, claim, leave }[event.target.dataset.action];
    if (!action) return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    const button = event.target.querySelector("button");
    button.setAttribute("aria-busy", "true");
    try { await action(); } catch { trouble(words.unreachable); }
    button.removeAttribute("aria-busy");
    busy = false;
    if (ticket && action !== join) poll();
  });
  const look = () => { if (!document.hidden && ticket && !busy && !OVER.includes(scene)) Date.now() - askedAt > (ticket.poll_after_ms ?? 5000) ? poll() : pace(); };
  document.addEventListener("visibilitychange", look);
  addEventListener("pageshow", (event) => { if (event.persisted) look(); });
  addEventListener("online", look);

  // A stream only tells sooner what the next question would have told.
  let stream;
  const listen = () => {
    if (document.body.dataset.events !== "1" || !ticket || stream) return;
    stream = new EventSource(given.queue + "/" + encodeURIComponent(ticket.ticket) + "/events");
    for (const kind of ["position", "turn", "paused", "sold_out", "closed"])
      stream.addEventListener(kind, () => { if (dueAt - Date.now() > 1000) plan(Math.random() * 1000); });
    stream.onerror = () => { stream.close(); stream = null; };
  };

  setInterval(tick, 250);
  show(scene);
  if (ticket) { pace(); listen(); }
  else if (scene === "join") join();
  else if (scene === "sold_out") setTimeout(() => location.reload(), jitter(SLOWEST));
})();
