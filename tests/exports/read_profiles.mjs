// Reads exported profiles with other people's parsers: pprof-format, speedscope's JSON schema, and speedscope itself in
// Chromium, which imports its own JSON, pprof and collapsed stacks. Prints one JSON line.
//
// usage: node read_profiles.mjs FOLDER STEM CHROMIUM SCREENSHOTS     (run where package.json's modules are)

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import zlib from "node:zlib";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { Profile } = require("pprof-format");
const { chromium } = require("playwright-core");
const Ajv = require("ajv");
const [folder, stem, browserPath, shots] = process.argv.slice(2);
const file = (suffix) => path.join(folder, `${stem}.${suffix}`);

function pprof() {
  const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file("pb.gz"))));
  const strings = profile.stringTable.strings;
  const names = profile.sampleType.map((type) => strings[Number(type.type)]);
  const functions = new Map(profile.function.map((one) => [Number(one.id), one]));
  const locations = new Map(profile.location.map((one) => [Number(one.id), one]));
  const sums = Object.fromEntries(names.map((name) => [name, 0]));
  const byLine = {};
  for (const sample of profile.sample) {
    sample.value.forEach((value, at) => (sums[names[at]] += Number(value)));
    const lines = new Set();
    for (const id of sample.locationId) {
      const { functionId, line } = locations.get(Number(id)).line[0];
      lines.add(`${strings[Number(functions.get(Number(functionId)).filename)]}:${Number(line)}`);
    }
    const bytes = Number(sample.value[names.indexOf("inuse_space")]);
    for (const line of lines) byLine[line] = (byLine[line] ?? 0) + bytes;
  }
  const units = profile.sampleType.map((type) => strings[Number(type.unit)]);
  return { names, units, sums, byLine, shown: strings[Number(profile.defaultSampleType)] };
}

function speedscopeFile(modules) {
  const schema = JSON.parse(fs.readFileSync(path.join(modules, "speedscope/dist/release/file-format-schema.json")));
  const data = JSON.parse(fs.readFileSync(file("speedscope.json")));
  const validate = new Ajv({ strict: false }).compile(schema);
  const errors = validate(data) ? [] : validate.errors;
  const profiles = data.profiles.map((one) => ({
    name: one.name,
    unit: one.unit,
    end: one.endValue,
    sum: one.weights.reduce((sum, weight) => sum + weight, 0),
  }));
  return { errors, profiles };
}

// As speedscope's command line opens a file: a script that calls the page. The page draws on a canvas; its tables are text.
async function imported(page, name, modules) {
  const base64 = fs.readFileSync(path.join(folder, name)).toString("base64");
  const script = path.join(folder, `${name}.js`);
  fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(base64)})`);
  const index = path.join(modules, "speedscope/dist/release/index.html");
  await page.goto("about:blank");
  await page.goto(`file://${index}#localProfilePath=${path.resolve(script)}`);
  await page.getByText("Sandwich").click({ timeout: 20000 });
  await page.waitForTimeout(500);
  const text = await page.evaluate(() => document.body.innerText);
  if (shots) await page.screenshot({ path: path.join(shots, `speedscope-${name}.png`) });
  return text;
}

async function inSpeedscope(modules) {
  const args = ["--no-sandbox", "--use-gl=swiftshader", "--enable-unsafe-swiftshader"];
  const browser = await chromium.launch({ executablePath: browserPath, args });
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => (errors.push(dialog.message()), dialog.dismiss()));
  const texts = {};
  for (const name of ["speedscope.json", "pb.gz", "txt"].map((suffix) => `${stem}.${suffix}`)) {
    texts[name] = await imported(page, name, modules);
  }
  await browser.close();
  return { errors, texts };
}

const modules = path.join(process.cwd(), "node_modules");
console.log(JSON.stringify({ pprof: pprof(), speedscope: speedscopeFile(modules), page: await inSpeedscope(modules) }));
