"""The words of the commands `derive`, `list` and `verify`."""

from __future__ import annotations

REPORTS = {
    # derive
    "denominator layout: a derivative of a scalar has the shape of its variable": (
        "分母布局：标量的导数与自变量形状相同"
    ),
    "numerator layout: the axes of the variable in reverse (a vector gives a row)": (
        "分子布局：自变量的各轴倒序（向量给出行向量）"
    ),
    "numerator layout: the axes of the value first, then those of the variable": (
        "分子布局：先排函数值的各轴，再排自变量的各轴"
    ),
    "denominator layout: the axes of the variable first, then those of the value": (
        "分母布局：先排自变量的各轴，再排函数值的各轴"
    ),
    "in {} layout: {}": "{}布局下：{}",
    "index form": "指标形式",
    "steps": "步骤",
    "checked: {}": "检验：{}",
    "example": "算例",
    "example: {}": "算例：{}",
    "array": "数组",
    "shape": "形状",
    "scalar": "标量",
    "forward operations": "前向运算量",
    "operations with derivatives": "含求导的运算量",
    "bytes read and written": "读写字节数",
    "backward keeps": "反向计算需保留",
    "nothing": "无",
    "{} bytes in {}": "{1} 下 {0} 字节",
    # count, variance
    "assumed: {}": "假设：{}",
    "entries of {}": "{} 的元素个数",
    "parameters ({})": "参数个数（{}）",
    "operations": "运算次数",
    "order": "量级",
    "with": "其中",
    # list, verify
    "{} entries; `gradproof show ID` and `gradproof derive ID` tell more": (
        "共 {} 个条目；详情见 `gradproof show ID` 与 `gradproof derive ID`"
    ),
    "no CUDA device is used: torch runs on the CPU": "未使用 CUDA 设备：torch 在 CPU 上运行",
    "entry": "条目",
    "status": "状态",
    "compared": "比较内容",
    "error": "误差",
    "allowed": "容许误差",
    "time": "用时",
    "passed": "通过",
    "failed": "未通过",
    "skipped": "跳过",
    "statement not compared": "未与陈述比较",
    "{count} {things}": "{things} {count} 个",
    "{} ({})": "{}（{}）",
    "value and {}: {}": "函数值与{}：{}",
    "{} gradients": "{} 个梯度",
    "tangent": "切向量",
    "torch": "torch",
    "mpmath": "mpmath",
    "differences": "差分",
    "derived": "已推出",
    "identity": "恒等式",
    "identities": "恒等式",
    "claim": "待检公式",
    "claims": "待检公式",
    "moment": "矩",
    "moments": "矩",
    "row of evidence": "数值证据",
    "rows of evidence": "数值证据",
    # numbers
    "yes": "是",
    "no": "否",
    "as stated": "如所述",
    "differs from {} by {} or more": "与 {} 至少相差 {}",
    "[{}]": "[{}]",
}
