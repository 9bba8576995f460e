import { describe, expect, it } from "vitest";
import { SvgSurface, escapeXml } from "./svg";

describe("SVG", () => {
  it("writes rectangles, paths and text with their colours", () => {
    const surface = new SvgSurface(100, 50);
    surface.fillStyle = "#abcdef";
    surface.fillRect(1.234, 2, 3, 4);
    surface.beginPath();
    surface.moveTo(0, 0);
    surface.lineTo(10, NaN);
    surface.strokeStyle = "red";
    surface.setLineDash([6, 3]);
    surface.stroke();
    const text = surface.finish("run");
    expect(text).toContain('<rect x="1.23" y="2" width="3" height="4" fill="#abcdef"/>');
    expect(text).toContain('<path d="M0 0L10 0" fill="none" stroke="red" stroke-width="1" stroke-dasharray="6 3"/>');
    expect(text).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="100" height="50"/);
  });

  it("never lets names become markup", () => {
    const surface = new SvgSurface(10, 10);
    surface.fillText('<script>alert("1")</script>&\u0000', 0, 0);
    const text = surface.finish("</title><script>");
    expect(text).not.toContain("<script");
    expect(text).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;\ufffd");
    expect(escapeXml("a\ud800b")).toBe("a\ufffdb");
  });

  it("closes as many groups as clips opened, also when restore is forgotten", () => {
    const surface = new SvgSurface(10, 10);
    surface.save();
    surface.rect(0, 0, 5, 5);
    surface.clip();
    surface.save();
    surface.clip();
    surface.restore();
    const text = surface.finish("x");
    expect(text.match(/<g /g)).toHaveLength(2);
    expect(text.match(/<\/g>/g)).toHaveLength(2);
  });

  it("restores what was saved", () => {
    const surface = new SvgSurface(10, 10);
    surface.fillStyle = "blue";
    surface.save();
    surface.fillStyle = "red";
    surface.globalAlpha = 0.5;
    surface.restore();
    surface.fillRect(0, 0, 1, 1);
    expect(surface.finish("x")).toContain('fill="blue"/>');
  });
});
