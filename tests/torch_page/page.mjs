// Opens a snapshot in PyTorch's MemoryViz page and prints what it showed, as JSON on standard output.
//
// usage: node page.mjs PICKLE OUT_DIR MEMORY_VIZ_JS NODE_MODULES CHROMIUM FRAME
//
// { errors, load_ms, views: [{ name, device, errors, polygons, rects, events_clicked?, blocks?: [text of a clicked block] }] }
// Called by run.py, which brings the files and judges. Nothing leaves this machine: other hosts are refused.

import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';

const [snapshot, outDir, vizFile, modules, chromiumPath, frame] = process.argv.slice(2);
const { chromium } = createRequire(path.join(modules, 'x.js'))('playwright-core');
const MAX_CLICKS = 400;
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const ANY = { 'access-control-allow-origin': '*' };

// The ES module of an npm package, as a path of our server.
function entry(name) {
  const file = JSON.parse(fs.readFileSync(path.join(modules, name, 'package.json')));
  const exported = file.exports?.['.'] ?? file.exports;
  const choice = exported?.default?.default ?? exported?.default ?? exported?.import ?? file.module ?? file.main;
  return `/modules/${name}/${String(choice).replace(/^\.\//, '')}`;
}

// Up to torch 2.10 the page wants d3 version 5 and its global `d3.event`; later ones import d3 7 from jsdelivr.
const isOld = /skypack/.test(fs.readFileSync(vizFile, 'utf8'));

function html() {
  const imports = {};
  const packages = fs.readdirSync(modules).filter(name => /^(d3|internmap|delaunator|robust-predicates)/.test(name));
  for (const name of packages) imports[name] = entry(name);
  for (const [name, major] of [['d3', 7], ['d3-axis', 3], ['d3-scale', 4], ['d3-zoom', 3], ['d3-brush', 3]])
    imports[`https://cdn.jsdelivr.net/npm/${name}@${major}/+esm`] = imports[name];
  return `<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
${isOld ? '<script src="/modules/d3v5/dist/d3.min.js"></script>' : ''}
<body><script type="module">import "/viz/${path.basename(vizFile)}"; window.isReady = true;</script>`;
}

function script(file) {
  const text = fs.readFileSync(file, 'utf8');
  if (!/skypack/.test(text)) return text;
  return text.replace(/^import \* as d3 from .*$/m, 'const d3 = window.d3;')
    .replace(/^import \{(.*)\} from "https:\/\/cdn\.skypack.*$/mg, 'const {$1} = window.d3;');
}

function answer(request, response) {
  const name = new URL(request.url, 'http://x').pathname;
  const reply = (type, body) => { response.writeHead(200, { 'content-type': type, ...ANY }); response.end(body); };
  if (name === '/') return reply('text/html', html());
  if (name === '/snapshot') return reply('application/octet-stream', fs.readFileSync(snapshot));
  const [, kind, ...rest] = path.posix.normalize(name).split('/');
  const root = { viz: path.dirname(vizFile), modules }[kind];
  const file = root && path.join(root, ...rest);
  if (!file || !fs.existsSync(file)) { response.writeHead(404); return response.end(); }
  reply('text/javascript', script(file));
}

// Functions that run in the page.

const shown = () => [...document.querySelectorAll('pre')].filter(x => x.checkVisibility()).map(x => x.textContent).join('\n');

async function drop(name) {
  const bytes = await (await fetch('/snapshot')).arrayBuffer();
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
}

async function select([view, device]) {
  const [, views, devices] = document.querySelectorAll('select');
  devices.value = device;
  views.value = view;
  views.dispatchEvent(new Event('change'));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const visible = selector => [...document.querySelectorAll(selector)].filter(x => x.checkVisibility()).length;
  return { polygons: visible('svg polygon'), rects: visible('svg rect') };
}

// Clicks blocks of a timeline; stops at one that shows `frame`, so that the screenshot has it.
async function clickBlocks([most, frame, shownSource]) {
  const shown = eval(shownSource);
  // The overview below the timeline has a polygon too, under a brush that is not for clicks.
  const isBlock = x => x.checkVisibility() && !x.closest('svg').querySelector('.overlay');
  const blocks = [...document.querySelectorAll('svg polygon')].filter(isBlock);
  const texts = [];
  for (const block of blocks.slice(0, most)) {
    for (const type of ['mouseover', 'mousedown']) block.dispatchEvent(new MouseEvent(type, { bubbles: true, view: window }));
    texts.push(shown());
  }
  const chosen = blocks[texts.findIndex(text => text.includes(frame))];
  for (const type of ['mouseover', 'mousedown']) chosen?.dispatchEvent(new MouseEvent(type, { bubbles: true, view: window }));
  return texts;
}

// Clicks events of the history, spread over the whole list: each click rebuilds the memory at that event.
async function clickEvents(most) {
  const rows = [...document.querySelectorAll('pre')].filter(x => x.checkVisibility() && x.parentElement.style.fontFamily === 'monospace');
  const every = Math.max(1, Math.ceil(rows.length / most));
  const chosen = rows.filter((_, at) => at % every === 0 || at === rows.length - 1);
  for (const row of chosen) {
    for (const type of ['mouseover', 'mousedown']) row.dispatchEvent(new MouseEvent(type, { bubbles: true, view: window }));
    await new Promise(done => requestAnimationFrame(done));
  }
  return chosen.length;
}

async function look(page, view, device, take) {
  const result = { name: view, device, ...await page.evaluate(select, [view, device]) };
  if (/Timeline|Allocated Memory/.test(view)) result.blocks = await page.evaluate(clickBlocks, [MAX_CLICKS, frame, shown.toString()]);
  if (/State History/.test(view)) result.events_clicked = await page.evaluate(clickEvents, 100);
  const name = `${view.replace(/[^A-Za-z0-9]+/g, '_')}_${device}.png`;
  await page.screenshot({ path: path.join(outDir, name) });
  return { ...result, screenshot: name, errors: take() };
}

async function main() {
  const server = http.createServer(answer);
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'memviz-page-'));
  const options = { executablePath: chromiumPath, headless: true, viewport: { width: 1400, height: 900 }, args: FLAGS };
  const browser = await chromium.launchPersistentContext(profile, options);
  const page = browser.pages()[0] ?? await browser.newPage();
  const errors = [];
  page.on('pageerror', error => errors.push((error.stack ?? String(error)).split('\n').slice(0, 3).join(' | ')));
  page.on('console', message => { if (message.type() === 'error') errors.push(message.text()); });
  page.on('crash', () => errors.push('the page crashed'));
  await page.route('**/*', route => {
    const isLocal = /^(http:\/\/127\.0\.0\.1:|data:)/.test(route.request().url());
    return isLocal ? route.continue() : (errors.push(`blocked ${route.request().url()}`), route.abort());
  });
  const take = () => errors.splice(0);
  try {
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction('window.isReady === true');
    const started = Date.now();
    await page.evaluate(drop, path.basename(snapshot));
    await page.waitForFunction(() => document.querySelectorAll('select')[2]?.options.length > 0).catch(error => errors.push(String(error)));
    const result = { errors: take(), load_ms: Date.now() - started, views: [] };
    const [, views, devices] = await page.evaluate(() => [...document.querySelectorAll('select')].map(x => [...x.options].map(y => y.value)));
    for (const device of devices ?? []) for (const view of views) result.views.push(await look(page, view, device, take));
    console.log(JSON.stringify(result));
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

await main();
