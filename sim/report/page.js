// The timeline with zoom: draws the states that lie in the page as JSON on ECharts, in place of the still picture.
(function () {
  "use strict";
  var holder = document.getElementById("timeline-data"), box = document.getElementById("zoom");
  if (!holder || !box || !window.echarts) return;
  var timeline = JSON.parse(holder.textContent), still = document.getElementById("still");
  var chart = null;

  function color(name) {
    var probe = document.createElement("i");
    probe.className = name;
    box.appendChild(probe);
    var value = getComputedStyle(probe).backgroundColor;
    box.removeChild(probe);
    return value;
  }
  function variable(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function time(ns) {
    if (ns <= 0) return "0";
    if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
    if (ns >= 1e6) return (ns / 1e6).toFixed(2) + " ms";
    return (ns / 1e3).toFixed(1) + " us";
  }
  function escaped(text) {
    return text.replace(/[&<>"]/g, function (c) { return "&#" + c.charCodeAt(0) + ";"; });
  }

  var items = [];
  timeline.lanes.forEach(function (lane, row) {
    var at = lane.begin_ns;
    lane.states.forEach(function (state) {
      items.push([row, at, at + state[0], state[1], state[2]]);
      at += state[0];
    });
  });

  function draw() {
    var narrow = box.clientWidth < 600;
    var colors = timeline.classes_css.map(color);
    var names = timeline.lanes.map(function (lane) { return narrow ? "rank " + lane.rank : lane.title; });
    if (chart) chart.dispose();
    box.style.height = timeline.lanes.length * 26 + 96 + "px";
    chart = window.echarts.init(box, null, { renderer: "canvas" });
    var ink = variable("--ink"), soft = variable("--soft"), line = variable("--line");
    chart.setOption({
      animation: false,
      textStyle: { color: ink },
      grid: { left: narrow ? 62 : 168, right: 14, top: 6, bottom: 78 },
      tooltip: {
        confine: true, backgroundColor: variable("--paper"), borderColor: line, textStyle: { color: ink, fontSize: 12 },
        formatter: function (hit) {
          var v = hit.value, mb = v[4] >= 0 ? ", micro-batch " + v[4] : "";
          return "<b>" + escaped(timeline.kind_titles[v[3]]) + "</b>" + mb + "<br>" + escaped(timeline.lanes[v[0]].title) +
            "<br>" + time(v[2] - v[1]) + ", from " + time(v[1]);
        }
      },
      xAxis: {
        type: "value", min: 0, max: timeline.span_ns, splitLine: { lineStyle: { color: line } },
        axisLabel: { color: soft, hideOverlap: true, formatter: time }, axisLine: { lineStyle: { color: line } }
      },
      yAxis: {
        type: "category", inverse: true, data: names, axisTick: { show: false }, axisLine: { lineStyle: { color: line } },
        axisLabel: { color: soft, interval: 0, fontSize: 11 }
      },
      dataZoom: [
        { type: "slider", filterMode: "weakFilter", height: 22, bottom: 14, labelFormatter: time, textStyle: { color: soft }, showDetail: !narrow },
        { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false }
      ],
      series: [{
        type: "custom", data: items, encode: { x: [1, 2], y: 0 }, progressive: 6000,
        renderItem: function (params, api) {
          var from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]);
          var height = api.size([0, 1])[1] * 0.8;
          var shape = window.echarts.graphic.clipRectByRect(
            { x: from[0], y: from[1] - height / 2, width: Math.max(to[0] - from[0], 0.4), height: height },
            { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height });
          return shape && { type: "rect", shape: shape, style: { fill: colors[api.value(3)] } };
        }
      }]
    });
  }

  box.hidden = false;
  still.style.display = "none";
  draw();
  var waiting = 0;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
